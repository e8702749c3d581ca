"""Values that show themselves: `repr` in one line, `print` in full, and in a notebook what `print` says, as a table.

Tables have no colours of their own, so that they are read in the notebook's dark and light alike; every text is
escaped, and none is taken for a formula.
"""

import re
from collections.abc import Sequence
from html import escape

from confide.support.foreign_text import harmless, one_line

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
        """What `print` shows, as a table for notebooks."""
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
