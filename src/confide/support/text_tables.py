"""Text for people: numbers, aligned columns for screens, and HTML, escaped, for the last line of a notebook's cell."""

import math
from collections.abc import Sequence
from decimal import Decimal
from html import escape

from confide.support.foreign_text import one_line


def decimal_text(value: float, digits: int = 4) -> str:
    """A number with a few significant digits, and without an exponent unless it is astronomical.

    Examples
    --------
    >>> decimal_text(1e6), decimal_text(1e-6), decimal_text(0.123456)
    ('1,000,000', '0.000001', '0.1235')
    """
    text = f"{value:.{digits}g}"
    return text if math.isinf(value) or not 1e-15 < abs(value) < 1e15 else f"{Decimal(text):,f}"


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Two aligned columns, one line for each row, whatever its cells hold.

    Examples
    --------
    >>> print(aligned([("alpha", "0.1"), ("epsilon", "1")]))
      alpha    0.1
      epsilon  1
    """
    cells = [(one_line(name), one_line(value)) for name, value in rows]
    width = max(len(name) for name, _ in cells)
    return "\n".join(f"  {name:<{width}}  {value}".rstrip() for name, value in cells)


def html_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in HTML, the first cell of each row its head; without a head row if there are no heads.

    Examples
    --------
    >>> html_table("Sets", ["set", "size"], [["{cat}", 1]])
    '<table><caption>Sets</caption><thead><tr><th>set</th><th>size</th></tr></thead><tbody><tr><th>{cat}</th><td>1...'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for tag, cell in zip(_tags(row), row, strict=True))
        + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<table><caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table>"


def html_lines(caption: str, text: str) -> str:
    """Lines such as `promise: coverage at least 0.9` as a table of two columns.

    Examples
    --------
    >>> html_lines("Plan", "alpha: 0.1")
    '<table><caption>Plan</caption><tbody><tr><th>alpha</th><td>0.1</td></tr></tbody></table>'
    """
    split = (line.strip().partition(": ") for line in text.splitlines())
    return html_table(caption, (), [(name, value) if value else ("", name) for name, _, value in split])


def _tags(row: Sequence[object]) -> list[str]:
    return ["th", *["td"] * (len(row) - 1)]
