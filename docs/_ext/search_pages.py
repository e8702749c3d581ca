"""Search that shows text, from a server and from files on disk: `search-text.js` has the text of all sections.

Sphinx shows an excerpt by fetching the result page, which browsers forbid for files on disk. Here the text of all
sections, taken from the built pages, is a script that the page of results loads; MiniSearch
(docs/_static/minisearch) indexes it in the browser. No other page loads an index.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FILE = "search-text.js"
SKIPPED = {"script", "style", "svg", "nav", "annotation", "button", "noscript"}
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = "p div pre li ul ol table tr td th dl dt dd section figcaption br"
BLOCKS = HEADINGS | set(_BLOCKS.split())


@dataclass
class Section:
    """A link target: a heading with the text below it, or a documented name with its text."""

    anchor: str
    name: bool
    title: str = ""
    text: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)

    def row(self, page: int) -> list[Any]:
        """The stored fields: page, anchor, title, text, and whether it is a name of the reference."""
        text = re.sub(r"\s+", " ", "".join(self.text) + " " + "".join(self.signature)).strip()
        return [page, self.anchor, re.sub(r"\s+", " ", self.title).strip(), text, int(self.name)]


class Sections(HTMLParser):
    """The sections of one page, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Section] = []
        self.inside = False
        self.anchor = ""
        self.into = "text"
        self.skipped, self.depth = "", 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a section at a heading, or at a documented name."""
        has = {name: value or "" for name, value in attrs}
        if tag == "article":
            self.inside = True
        if self.skipped:
            self.depth += tag == self.skipped
            return
        if tag in SKIPPED or "headerlink" in has.get("class", ""):
            self.skipped, self.depth = tag, 1
            return
        if tag == "section":
            self.anchor = has.get("id", "")
        elif tag in HEADINGS and self.inside:
            self.found.append(Section("" if tag == "h1" else self.anchor, name=False))
            self.into = "title"
        elif tag == "dt" and "sig-object" in has.get("class", "") and "id" in has:
            self.found.append(Section(has["id"], name=True, title=has["id"]))
            self.into = "signature"
        self.space(tag)

    def handle_endtag(self, tag: str) -> None:
        """End a heading, a signature, or a skipped element."""
        if tag == "article":
            self.inside = False
        if self.skipped:
            self.depth -= tag == self.skipped
            if not self.depth:
                self.skipped = ""
            return
        self.space(tag)
        if (tag in HEADINGS and self.into == "title") or (tag == "dt" and self.into == "signature"):
            self.into = "text"

    def handle_data(self, data: str) -> None:
        """Add text to the last section."""
        if self.inside and self.found and not self.skipped:
            last = self.found[-1]
            if self.into == "title":
                last.title += data
            else:
                getattr(last, self.into).append(data)

    def space(self, tag: str) -> None:
        """Separate the words of two blocks."""
        if tag in BLOCKS:
            self.handle_data(" ")


def index(folder: Path, pages: list[str]) -> dict[str, list[Any]]:
    """The text of all pages of a built site: addresses and titles of pages, and their sections."""
    out: dict[str, list[Any]] = {"pages": [], "sections": []}
    for page in pages:
        sections = Sections((folder / f"{page}.html").read_text(encoding="utf-8")).found
        rows = [section.row(len(out["pages"])) for section in sections]
        out["pages"].append([f"{page}.html", rows[0][2] if rows else page])
        out["sections"] += rows
    return out


def switch_off_sphinx_search(app: Sphinx) -> None:
    """Disable the index of Sphinx, which the theme would load on every page."""
    if app.builder.format == "html":
        app.builder.search = False  # type: ignore[attr-defined]


def results_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The page of results, which Sphinx makes only if its own search is on."""
    if app.builder.format == "html":
        yield "search", {}, "search.html"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the texts next to the pages."""
    if exception is None and app.builder.format == "html":
        made = json.dumps(
            index(Path(app.outdir), sorted(app.env.found_docs)), ensure_ascii=False, separators=(",", ":")
        )
        (Path(app.outdir) / FILE).write_text(f"window.searchText = {made};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("builder-inited", switch_off_sphinx_search)
    app.connect("html-collect-pages", results_page)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
