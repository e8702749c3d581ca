"""Descriptions of values: a `Section`, which is rendered as text, as Markdown, in notebooks, on pages and as JSON.

`print` shows the text of a section, `repr` one line, and a notebook a table. Tables have no colours of their own, so
that they suit dark and light notebooks. Every text is escaped, and none is interpreted as a formula.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from confide.support.shown import aligned, escape_line, escape_text

# Names and values
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Rows of texts with column heads.

    Parameters
    ----------
    heads
        One for each column.
    rows
        One text for each column; the first names the row.
    caption
        A description of the rows.
    total
        The number of all rows, if `rows` has only the first ones.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    total: int = 0


@dataclass(frozen=True)
class Section:
    """A description in parts, of texts only; every rendering escapes the texts.

    Parameters
    ----------
    title
        The name of the value.
    lead
        Sentences, one per line.
    facts
        Names and values.
    tables
        Tables below the facts.
    warnings
        Sentences before everything else.
    picture
        Draws a picture of the same numbers, for pages: returns matplotlib axes.
    parts
        Subsections.
    notes
        Sentences at the end.
    """

    title: str
    lead: str = ""
    facts: Facts = ()
    tables: tuple[Table, ...] = ()
    warnings: tuple[str, ...] = ()
    picture: Callable[[], Any] | None = field(default=None, compare=False)
    parts: tuple["Section", ...] = ()
    notes: tuple[str, ...] = ()


class Described:
    """A value that describes itself: `_section` returns its whole description, by default `_brief`, which is one line.

    Examples
    --------
    >>> class Threshold(Described):
    ...     def _section(self):
    ...         return Section("Threshold", facts=(("threshold", "0.5"), ("score", "lac")))
    ...
    ...     def _brief(self):
    ...         return "0.5"
    >>> Threshold()
    Threshold(0.5)
    >>> print(Threshold())
    threshold: 0.5
    score: lac
    """

    __slots__ = ()

    def _section(self) -> Section:
        return Section(type(self).__name__, self._brief())

    def _brief(self) -> str:
        """The text between the parentheses of its `repr`: short and public."""
        raise NotImplementedError

    def __str__(self) -> str:
        return to_text(describe(self))

    def __repr__(self) -> str:
        return escape_line(f"{type(self).__name__}({self._brief()})")

    def _repr_html_(self) -> str:
        return to_html(describe(self))


def describe(value: Any) -> Section:
    """The description of a value; `TypeError` if it has none.

    Examples
    --------
    >>> describe(object())
    Traceback (most recent call last):
    TypeError: a value of type object has no description
    """
    if not isinstance(value, Described):
        raise TypeError(f"a value of type {type(value).__name__} has no description")
    return value._section()


# Text


def to_text(section: Section) -> str:
    """The text of a section: facts as `name: value`, those of its parts in aligned columns."""
    return "\n".join(_lines(section, [f"{name}: {value}" for name, value in section.facts]))


def _lines(section: Section, facts: Sequence[str]) -> Iterator[str]:
    """The lines of a section, with these lines for its facts."""
    yield from section.warnings
    if section.lead:
        yield section.lead
    yield from facts
    for table in section.tables:
        yield from _columns(table)
    for inner in section.parts:
        if inner.title:
            yield f"{inner.title}:"
        yield from _lines(inner, [aligned(inner.facts)] if inner.facts else [])
    yield from section.notes


def _columns(table: Table) -> Iterator[str]:
    rows = [table.heads, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


# Markdown

# Characters that Markdown interprets: within a line, at its beginning, or after the number of a list
_MARKS = re.compile(r"[\\`*_\[\]<>|~&$]|^[#+=-]")
_ITEM_NUMBER = re.compile(r"^(\d{1,9})(?=[.)](\s|$))")


def to_markdown(section: Section) -> str:
    """A section as Markdown: headings, lists of facts, and tables; pictures are left out. Every text is escaped."""
    return "\n\n".join(_blocks(section, level=1))


def _blocks(section: Section, level: int) -> Iterator[str]:
    if section.title:
        yield f"{'#' * min(level, 6)} {_escaped(section.title)}"
    yield from (f"> **Warning.** {_escaped(line)}" for line in section.warnings)
    yield from map(_escaped, section.lead.splitlines())
    if section.facts:
        yield "\n".join(f"- **{_escaped(name)}**: {_escaped(value)}" for name, value in section.facts)
    for table in section.tables:
        if table.caption not in ("", section.title):
            yield _escaped(table.caption)
        heads, *rows = ([_escaped(cell) for cell in row] for row in (table.heads, *table.rows))
        yield "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))
    for inner in section.parts:
        yield from _blocks(inner, level + 1 if section.title else level)
    yield from map(_escaped, section.notes)


def _escaped(text: str) -> str:
    marked = _MARKS.sub(r"\\\g<0>", escape_line(text).strip())
    return _ITEM_NUMBER.sub(r"\1\\", marked)


# Notebooks

# Rows of a table; texts and files have all of them
MOST_SHOWN = 20

_LEFT = ' style="text-align:left;vertical-align:top"'


def to_html(section: Section) -> str:
    """Write a section as one HTML table for a notebook, with at most `MOST_SHOWN` rows of each table."""
    columns = max((len(table.heads) for inner in _all(section) for table in inner.tables), default=2)
    caption = f"<caption{_LEFT}>{_text(section.title)}</caption>"
    body = "".join(_rows(section, columns))
    return f'<table class="tex2jax_ignore mathjax_ignore">{caption}<tbody>{body}</tbody></table>'


def _all(section: Section) -> Iterator[Section]:
    yield section
    for inner in section.parts:
        yield from _all(inner)


def _rows(section: Section, columns: int) -> Iterator[str]:
    yield from (_row((line,), columns) for line in (*section.warnings, *section.lead.splitlines()))
    yield from _first(section.facts, 0, columns)
    for table in section.tables:
        yield f"<tr>{''.join(_cell('th', head, scope='col') for head in table.heads)}</tr>"
        yield from _first(table.rows, table.total, columns)
    for inner in section.parts:
        if inner.title:
            yield f"<tr>{_cell('th', inner.title, scope='rowgroup', columns=columns)}</tr>"
        yield from _rows(inner, columns)
    yield from (_row((line,), columns) for line in section.notes)


def _first(rows: Sequence[tuple[str, ...]], total: int, columns: int) -> Iterator[str]:
    """The first rows, and how many of `total` are left out."""
    yield from (_row(row, columns) for row in rows[:MOST_SHOWN])
    left = max(total, len(rows)) - min(len(rows), MOST_SHOWN)
    if left:
        yield _row((f"and {left:,} more",), columns)


def _row(cells: Sequence[str], columns: int) -> str:
    """A row whose first cell is the head, and whose last cell reaches to the end."""
    across = columns - len(cells) + 1
    if len(cells) == 1:
        return f"<tr>{_cell('td', cells[0], columns=across)}</tr>"
    first, *others, last = cells
    inner = "".join(_cell("td", cell) for cell in others)
    return f"<tr>{_cell('th', first, scope='row')}{inner}{_cell('td', last, columns=across)}</tr>"


def _cell(tag: str, value: str, *, scope: str = "", columns: int = 1) -> str:
    scoped = f' scope="{scope}"' if scope else ""
    spanned = f' colspan="{columns}"' if columns > 1 else ""
    return f"<{tag}{scoped}{spanned}{_LEFT}>{_text(value)}</{tag}>"


def _text(value: str) -> str:
    from html import escape

    return escape(escape_text(value))
