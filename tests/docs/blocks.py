"""The code blocks of a Markdown page, with the markers before them.

A marker is an HTML comment right before a block:

    <!-- output -->             the output of the block before; `...` matches anything
    <!-- output: numbers vary -->   the same, but numbers contain noise and are not compared
    <!-- needs: torch -->       run if these modules are installed, otherwise skipped with a message
    <!-- fails: 3 -->           the last command ends with this exit code
    <!-- not run: reason -->    not run, for this reason

`python` blocks run in order in one namespace; lines of `bash` blocks run in order as commands, in one folder per page.
Blocks in other languages are data or formulas to read. A block without a language is an error.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
RUN = ("python", "bash")
READ = ("text", "json", "toml", "csv", "sql", "diff", "yaml")
MARKERS = ("output", "needs", "fails", "not run")
COMMENT = re.compile(r"<!--\s*(?P<name>[a-z ]+?)\s*(?::\s*(?P<value>.+?))?\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: place, language, text and markers."""

    page: str
    line: int
    language: str
    text: str
    markers: dict[str, str]

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(re.split(r"[,\s]+", self.markers["needs"])) if "needs" in self.markers else frozenset()

    @property
    def runs(self) -> bool:
        return self.language in RUN and "not run" not in self.markers

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown page for readers: at the top, under docs/ and under examples/."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(page for page in found if not {"_build", "node_modules"} & {*page.parts})


def blocks(page: Path) -> list[Block]:
    """All blocks of a page in order, fenced and indented, without directives."""
    found, markers = [], {}
    name = page.relative_to(ROOT).as_posix()
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            comments = COMMENT.finditer(token.content)
            markers = markers | {m["name"]: (m["value"] or "").strip() for m in comments if m["name"] in MARKERS}
        elif token.type in ("fence", "code_block"):
            language = (token.info or "").strip()
            if not language.startswith("{"):
                found.append(Block(name, token.map[0] + 1, language, token.content, markers))
            markers = {}
        elif token.level == 0 and not token.type.endswith("_close"):
            markers = {}
    return found
