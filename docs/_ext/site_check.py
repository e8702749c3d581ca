"""`python docs/_ext/site_check.py FOLDER`: check links, formulas and offline use of the site.

Sphinx checks links between Markdown pages; this reads the built HTML, generated parts included.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
PAGES_ONLY = {"canonical", "next", "prev", "index", "search", "author", "copyright", "license"}
IN_STYLES = re.compile(r"url\(\s*['\"]?(https?:|//)|@import\s+(url\()?\s*['\"]?(https?:|//)")

IN_SCRIPTS = re.compile(r"""(?<=["'`])(?:https?:)?//(?!www\.w3\.org/)[\w-]+\.[\w.-]+[^"'`\s]*""")

UNSET = re.compile(r"\$|\\[a-zA-Z]{2,}|_\{")
"""Remains of a formula that was not typeset."""
AS_WRITTEN = ("code", "pre", "script", "style", "title", "svg")


class Page(HTMLParser):
    """Loaded files, links, link targets and sentences of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.formulas = 0
        self.words: list[str] = []
        self.as_written = 0
        self.feed(text)

    def handle_data(self, data: str) -> None:
        """Collect the words that are no code."""
        if not self.as_written:
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        self.as_written -= tag in AS_WRITTEN

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Classify the targets of a tag."""
        self.as_written += tag in AS_WRITTEN
        self.formulas += tag == "math"
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "link" and PAGES_ONLY & set(found.get("rel", "").split()):
            return
        if tag in LOADED and LOADED[tag] in found:
            self.loads.append(found[LOADED[tag]])
        elif tag == "a" and "href" in found:
            self.links.append(found["href"])


def problems(folder: Path) -> list[str]:
    """All defects of the site in a folder."""
    files = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.relative_to(folder).parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    wrong = [] if pages else [f"{folder} holds no pages"]
    for path, page in pages.items():
        name = path.relative_to(folder)
        for address in page.loads + page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    wrong.append(f"{name} loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{name} refers to {address}, which does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{name} refers to {address}, which has no such place")
        if name.parts[0] != "source":  # listings consist of code
            for word in " ".join(page.words).split():
                if UNSET.search(word):
                    wrong.append(f"{name} shows a formula that is not set: {word}")
    for path in sorted((folder / "_static").glob("*.js")):
        for address in IN_SCRIPTS.findall(path.read_text(encoding="utf-8")):
            wrong.append(f"{path.relative_to(folder)} names {address}")
    for path in sorted(folder.rglob("*.css")):
        if IN_STYLES.search(path.read_text(encoding="utf-8")):
            wrong.append(f"{path.relative_to(folder)} loads from the network")
    return wrong


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).resolve())
    sys.exit("\n".join(found) if found else None)
