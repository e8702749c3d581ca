"""A model card as a file: Markdown, or the same as an HTML page."""

from dataclasses import dataclass

from confide.reports.page import Page, page_of
from confide.support import (
    WRITTEN_BY,
    FileKind,
    FileLocation,
    Section,
    as_place,
    card_or_page,
    to_markdown,
    write_text,
)


@dataclass(frozen=True, repr=False)
class MarkdownPage:
    r"""A model card, as Markdown and as HTML.

    Parameters
    ----------
    section
        The description; its title is the heading.
    metadata
        YAML for the head of the file, with a line break after each line.

    Examples
    --------
    >>> page = MarkdownPage(Section("Triage", "Coverage is guaranteed."), "tags: []\n")
    >>> page
    MarkdownPage('Triage')
    >>> print(page.text.rstrip())
    ---
    # Written by confide
    tags: []
    ---
    <BLANKLINE>
    # Triage
    <BLANKLINE>
    Coverage is guaranteed.
    """

    section: Section
    metadata: str

    @property
    def text(self) -> str:
        """The Markdown."""
        return f"---\n# {WRITTEN_BY}\n{self.metadata}---\n\n{to_markdown(self.section)}\n"

    def page(self) -> Page:
        """The description as an HTML page, without the metadata.

        Raises
        ------
        MissingExtraError
            If `confide[standard]` is not installed.
        """
        return page_of("described.html", self.section.title, {"section": self.section}, script=False)

    def save(self, path: str | FileLocation, *, overwrite: bool = False) -> FileLocation:
        """Write Markdown (`.md`) or HTML (`.html`) to a file, atomically, and return its path.

        Raises
        ------
        InputError
            If the name has another ending, or the file exists and must not be overwritten, or cannot be written.
        """
        html = card_or_page(path) is FileKind.PAGE
        write_text(path, self.page().html if html else self.text, overwrite=overwrite)
        return as_place(path)

    def _repr_markdown_(self) -> str:
        return to_markdown(self.section)

    def __repr__(self) -> str:
        return f"MarkdownPage({self.section.title!r})"
