"""Pages: a `Section` as one self-contained HTML text with template, styles, script and pictures; it loads nothing."""

import base64
import hashlib
import io
import re
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from confide.errors import InputTypeError
from confide.support import (
    WRITTEN_BY,
    FileKind,
    FileLocation,
    Section,
    as_place,
    card_or_page,
    needs_extra,
    refuse_other_than_html,
    require,
    to_markdown,
    write_text,
)


@dataclass(frozen=True, repr=False)
class Page:
    r"""A description as one self-contained HTML page, which loads nothing and sends nothing, and as Markdown.

    Parameters
    ----------
    section
        The description; its title is the heading, and its parts are the sections of the page.
    file
        Name and text of the file that the page describes.
    metadata
        YAML for the head of the Markdown, with a line break after each line. Without it, a page is saved as HTML only.
    """

    section: Section
    file: tuple[str, str] | None = None
    metadata: str = ""

    @cached_property
    def html(self) -> str:
        """The HTML, with pictures if matplotlib is installed.

        Raises
        ------
        MissingExtraError
            If `confide[standard]` is not installed.
        """
        # The policy names script and style by their hashes, so that a script in a class name or file name cannot run.
        style = _text("assets/page.css")
        script = _text("assets/page.js")
        policy = (
            f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        values = {"section": self.section, "file": self.file, "style": style, "script": script, "policy": policy}
        return str(_template().render(values)).strip() + "\n"

    @property
    def text(self) -> str:
        """The Markdown, without pictures."""
        head = f"---\n# {WRITTEN_BY}\n{self.metadata}---\n\n" if self.metadata else ""
        return f"{head}{to_markdown(self.section)}\n"

    def save(self, path: str | FileLocation, *, overwrite: bool = False) -> FileLocation:
        """Write HTML, or a model card also as Markdown (`.md`), to a file, atomically, and return its path.

        Raises
        ------
        InputError
            If the name has another ending, or the file exists and must not be overwritten, or cannot be written.
        """
        if not self.metadata:
            refuse_other_than_html(path)
        markdown = bool(self.metadata) and card_or_page(path) is FileKind.CARD
        write_text(path, self.text if markdown else self.html, overwrite=overwrite)
        return as_place(path)

    def _repr_html_(self) -> str:
        """HTML of the page in a frame, for notebooks; the page's styles and scripts do not reach the notebook."""
        return (
            f'<iframe title="{escape(self.section.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: 640px; border: 0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({self.section.title!r})"


# Most characters of a title
MOST_TITLE = 200


def page_of(section: Section, title: str | None = None, **parts: Any) -> Page:
    """The page of a section, with another heading if one is given; `parts` are the file or the metadata of a `Page`."""
    if title is not None and not isinstance(title, str):
        raise InputTypeError("title", "must be a str", type(title).__name__)
    can_be_shown = title is None or (0 < len(title) <= MOST_TITLE and title.isprintable())
    require("title", can_be_shown, f"must have 1 to {MOST_TITLE} printable characters")
    return Page(replace(section, title=title or section.title), **parts)


def drawn(section: Section) -> tuple[str, str] | None:
    """Source and title of the picture of a section, an SVG image; None without a picture, or without matplotlib."""
    if section.picture is None or not find_spec("matplotlib"):
        return None
    import matplotlib as mpl
    from matplotlib import pyplot

    # An image within the page, in which no script runs; without the date, equal pictures have equal bytes.
    with mpl.rc_context({"svg.hashsalt": "confide", "svg.fonttype": "none"}), closing(io.BytesIO()) as held:
        axes = section.picture()
        axes.figure.savefig(held, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(axes.figure)
        source = base64.b64encode(held.getvalue()).decode()
    return f"data:image/svg+xml;base64,{source}", " ".join(axes.get_title().split())


def code(text: str) -> Any:
    """Escape a sentence, and mark command options and texts between backticks as code.

    Examples
    --------
    >>> str(code("calibrate <again> with --by-class."))
    'calibrate &lt;again&gt; with <code>--by-class</code>.'
    >>> str(code("`confide ledger limit` sets one."))
    '<code>confide ledger limit</code> sets one.'
    """
    from markupsafe import Markup

    pieces = re.split(r"(`[^`]+`|(?<![\w-])--[a-z][a-z-]*[a-z])", text)
    marked = (Markup("<code>{}</code>").format(piece.strip("`")) if i % 2 else piece for i, piece in enumerate(pieces))
    return Markup("").join(marked)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def _text(name: str) -> str:
    return files("confide.reports").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _template() -> Any:
    with needs_extra("a page", "standard"):
        import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"code": code, "drawn": drawn}
    return environment.from_string(_text("assets/page.html"))
