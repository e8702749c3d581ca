"""Measure how readable the texts are: words per sentence, in pages and in docstrings.

`python docs/_ext/readability.py` prints the median and the 90th percentile for each group of files, and `--check` fails
if one of them is above its limit. Words that the texts avoid are in docs/words.txt, which codespell checks.
"""

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUPS = {"pages": ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md"), "docstrings": ("src/**/*.py",)}
LIMITS = {"pages": (16, 30), "docstrings": (16, 30)}  # median and 90th percentile
SECTIONS = re.compile(r"^(Parameters|Returns|Raises|Yields|Warns|Attributes|Examples|Notes|References|See Also)$")
NO_PROSE = re.compile(r"^(#|\||```|~~~|:::|>>>|\.\. |!\[|<|\$\$|-{3}|={3}|\[\^)")


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a text, without headings, tables, code and formulas."""
    text = re.sub(r"^(```|~~~|:::|\$\$).*?^\1\s*$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", text):
        lines = [line.strip() for line in block.splitlines()]
        if lines and not NO_PROSE.match(lines[0]) and not any(SECTIONS.match(line) for line in lines):
            yield " ".join(line for line in lines if line)


def sentences(text: str) -> Iterator[int]:
    """Yield the number of words of each sentence; code, formulas and links count as one word."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"``[^`]*``|`[^`]*`|\$[^$]*\$", "x", plain)
        for sentence in re.split(r"(?<=[.!?])[*)\"']*\s+(?=[A-Z(*\"'`x])", plain):
            words = re.findall(r"[A-Za-z][A-Za-z'-]*|\d[\d.,]*", sentence)
            if len(words) > 2:
                yield len(words)


def texts(path: Path) -> Iterator[str]:
    """Yield a page, or the docstrings of a module."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield content
        return
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""


def main() -> None:
    """Print both figures of every group; with --check, fail if one is above its limit."""
    above = False
    for name, patterns in GROUPS.items():
        paths = (path for pattern in patterns for path in ROOT.glob(pattern) if "_build" not in path.parts)
        lengths = sorted(n for path in paths for text in texts(path) for n in sentences(text))
        measured = (int(statistics.median(lengths)), lengths[len(lengths) * 9 // 10])
        limits = LIMITS[name]
        sys.stdout.write(
            f"{name}: {len(lengths)} sentences, median {measured[0]} words, 90th percentile {measured[1]}\n"
        )
        above |= any(value > limit for value, limit in zip(measured, limits, strict=True))
    if above and "--check" in sys.argv:
        sys.exit(f"sentences are longer than the limits {LIMITS}")


if __name__ == "__main__":
    main()
