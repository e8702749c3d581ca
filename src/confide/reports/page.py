"""A page as a value: it saves itself, shows itself in a notebook, and prints in one line."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from confide.support import write_text


@dataclass(frozen=True, repr=False)
class Page:
    """One self-contained HTML page: it loads nothing and sends nothing.

    Parameters
    ----------
    title
        Its heading.
    html
        Its text, about 0.6 MB.

    Examples
    --------
    >>> Page("Triage", "<!doctype html>...")
    Page('Triage', 0.0 MB of HTML)
    """

    title: str
    html: str

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page to a file, atomically, and return its path.

        Raises
        ------
        InputError
            If the file exists and may not be overwritten, or cannot be written.
        """
        write_text(Path(path), self.html, overwrite=overwrite)
        return Path(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks: its styles stay inside, and it cannot reach the notebook."""
        return (
            f'<iframe title="{escape(self.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: 640px; border: 0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {len(self.html) / 1e6:.1f} MB of HTML)"
