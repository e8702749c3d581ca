"""What people see: texts of others made harmless, numbers and aligned columns, values that show themselves.

`repr` is one line, `print` is in full, and a notebook shows what `print` says as a table. Tables have no colours of
their own, so that they are read in the notebook's dark and light alike; every text is escaped, and none is taken for a
formula.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from html import escape

# Text that others wrote, made harmless for screens: what would steer a terminal is shown as an escape sequence.
#
# Control characters (also those of eight bits), marks that turn the direction of writing, and separators of lines and
# paragraphs. All other letters of all languages stay as they are.


_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LINES = re.compile("[\t\n]")


def harmless(text: str) -> str:
    r"""A text of one or several lines, for a terminal.

    Examples
    --------
    >>> harmless("one\n\x1b[31mtwo"), harmless("Zoë\u202e")
    ('one\n\\x1b[31mtwo', 'Zoë\\u202e')
    """
    return _STEERS.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""The same for a name within a line, which it does not leave.

    Examples
    --------
    >>> one_line("north\nsigned by the coordinator")
    'north\\nsigned by the coordinator'
    """
    return _LINES.sub(_escaped, harmless(text))


def harmless_json(text: str) -> str:
    r"""A JSON document that says the same, without characters that steer a terminal.

    Examples
    --------
    >>> harmless_json('{"name": "\x9b31m"}')
    '{"name": "\\u009b31m"}'
    """
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


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


MOST_SHOWN = 20
"""Rows of a table: a notebook is read, and files have all of them."""

_LONGEST_NAME = 30
_TABLE = '<table class="tex2jax_ignore mathjax_ignore">'
_LEFT = ' style="text-align:left;vertical-align:top"'


class Shown:
    """What shows itself; a kind of it says what it is by `__str__` in full and by `_brief` in one line.

    Examples
    --------
    >>> class Threshold(Shown):
    ...     def __str__(self):
    ...         return "threshold: 0.5"
    ...
    ...     def _brief(self):
    ...         return "0.5"
    >>> Threshold()
    Threshold(0.5)
    >>> "<td" in Threshold()._repr_html_()
    True
    """

    __slots__ = ()

    def _brief(self) -> str:
        """The value between the parentheses of its `repr`: short, public, and nothing that sounds better than it is."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return one_line(f"{type(self).__name__}({self._brief()})")

    def _repr_html_(self) -> str:
        return html_lines(type(self).__name__, str(self))


def html_table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = (), total: int = 0
) -> str:
    """A table in HTML, the first cell of each row its head; of very many rows the first.

    Parameters
    ----------
    caption
        What it is.
    heads
        One for each column; without them there is no row of heads.
    rows
        Cells, shown as texts. A row of one cell runs across all columns.
    notes
        Sentences below.
    total
        How many rows there are, if these are only the first.

    Examples
    --------
    >>> html_table("Sets", ["set", "size"], [["{cat}", 1]])
    '<table class=...>Sets</caption><thead><tr><th scope="col"...>set</th>...<th scope="row"...>{cat}</th>...'
    """
    columns = max(len(heads), *map(len, rows), 1) if rows else max(len(heads), 1)
    top = f"<thead><tr>{''.join(_cell('th', head, scope='col') for head in heads)}</tr></thead>" if heads else ""
    shown = rows[:MOST_SHOWN]
    left = max(total, len(rows)) - len(shown)
    more = [(f"and {left:,} more",)] if left else []
    body = "".join(_row(row, columns) for row in [*shown, *more, *((note,) for note in notes)])
    return f"{_TABLE}<caption{_LEFT}>{_text(caption)}</caption>{top}<tbody>{body}</tbody></table>"


def html_lines(caption: str, text: str) -> str:
    """Lines that people read, as a table: `name: value` and aligned columns are rows.

    Examples
    --------
    >>> html_lines("Plan", "alpha: 0.1")
    '<table class=...>Plan</caption><tbody><tr><th scope="row"...>alpha</th><td...>0.1</td></tr></tbody></table>'
    """
    lines = text.splitlines()
    body = "".join(_line(line, after) for line, after in zip(lines, [*lines[1:], ""], strict=True))
    return f"{_TABLE}<caption{_LEFT}>{_text(caption)}</caption><tbody>{body}</tbody></table>"


def _line(line: str, after: str) -> str:
    """One line; one that only heads those after it, which are indented, is their head."""
    name, *value = re.split(r"\s{2,}" if line.startswith("  ") else ": ", line.strip(), maxsplit=1)
    if value and len(name) > _LONGEST_NAME and line.endswith("."):
        return _row((line,), 2)  # a sentence with a colon
    if not value and after.startswith("  ") and not line.startswith("  "):
        return f"<tr>{_cell('th', name.removesuffix(':'), scope='rowgroup', columns=2)}</tr>"
    return _row((name, *value), 2)


def _row(cells: Sequence[object], columns: int) -> str:
    if len(cells) == 1:
        return f"<tr>{_cell('td', cells[0], columns=columns)}</tr>"
    first, *others = cells
    return f"<tr>{_cell('th', first, scope='row')}{''.join(_cell('td', cell) for cell in others)}</tr>"


def _cell(tag: str, value: object, *, scope: str = "", columns: int = 1) -> str:
    of = f' scope="{scope}"' if scope else ""
    across = f' colspan="{columns}"' if columns > 1 else ""
    return f"<{tag}{of}{across}{_LEFT}>{_text(value)}</{tag}>"


def _text(value: object) -> str:
    return escape(harmless(str(value)))
