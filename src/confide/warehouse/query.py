"""The counting query in the SQL dialect of each warehouse.

A dialect defines the syntax of names, texts and numbers; all of them are quoted. Everything else in a counting query
(CASE, comparisons, windows, GROUP BY) is the same text in every dialect. Numbers are texts that are cast, because in
some engines 0.1 is a decimal number.

The counting query is one statement: a scan and a GROUP BY, whose answer has one row per part and bin. Every record
gets a score by the double-precision arithmetic of `confide.tables`, and the number of candidates below it, by a tree
of comparisons (in Spark by a search). A record that cannot be used is counted under a negative bin, by the requirement
that it breaks. Conditions fail for NULL and NaN in every engine, in spite of different rules for NaN, because each
requires that a number lies between two others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.scores import score_kind
from confide.support import canonical_name, one_of
from confide.tables import ClassColumns, ScoreColumn, TargetColumns
from confide.warehouse.plan import CountingPlan

MOST_BYTES = 1_000_000
"""The limit of one query, for engines that have a limit."""


@dataclass(frozen=True)
class SqlDialect:
    """The syntax of one engine that differs from engine to engine.

    Parameters
    ----------
    name
        The engine's name.
    double, string
        Its types for double precision and for texts of any length.
    quote
        The quotation mark of column names.
    escapes
        The replacement for a character within a text.
    md5
        The hash of a text `{}` as hexadecimal digits.
    fence
        A clause that prevents the optimiser from computing a score again for every comparison.
    searches
        Whether bins are found by a binary search in an array, because large trees of CASE are slow to parse.
    folds
        Whether unquoted names are upper-case.
    limited
        Whether a query may have at most `MOST_BYTES`.
    run
        Whether the tests run it. Queries of other dialects are parsed, and run after a translation to DuckDB.
    """

    name: str
    double: str = "DOUBLE"
    string: str = "VARCHAR"
    quote: str = '"'
    escapes: Mapping[str, str] = field(default_factory=lambda: {"'": "''"})
    md5: str = "md5({})"
    fence: str = ""
    searches: bool = False
    folds: bool = False
    limited: bool = False
    run: bool = True

    def identifier(self, name: str) -> str:
        """The name of a column, quoted.

        If unquoted names are upper-case, plain names become so. A name that you type in double quotes is not changed.

        Examples
        --------
        >>> DIALECTS["postgres"].identifier("true label"), DIALECTS["snowflake"].identifier("label")
        ('"true label"', '"LABEL"')
        >>> DIALECTS["snowflake"].identifier('"label"')
        '"label"'
        """
        if self.folds:
            typed = len(name) > 2 and name[0] == name[-1] == '"'
            name = name[1:-1] if typed else name.upper() if _is_plain(name) else name
        _check("columns", name, "the name of a column or table")
        if self.quote == '"':
            return '"' + name.replace('"', '""') + '"'
        if not {"`", "\\"}.isdisjoint(name):  # in BigQuery a backslash there begins an escape
            raise InputError("columns", f"must not hold a backtick or a backslash in {self.name}", got=repr(name))
        return f"`{name}`"

    def relation(self, table: str) -> str:
        """The name of a table, with each part between points quoted.

        Examples
        --------
        >>> DIALECTS["bigquery"].relation("project.clinic.records")
        '`project`.`clinic`.`records`'
        """
        return ".".join(self.identifier(part) for part in table.split("."))

    def text(self, value: str) -> str:
        r"""A text.

        Examples
        --------
        >>> DIALECTS["duckdb"].text("it's"), DIALECTS["bigquery"].text("it's")
        ("'it''s'", "'it\\'s'")
        """
        _check("classes", value, "the text of a class or group")
        return "'" + "".join(self.escapes.get(letter, letter) for letter in value) + "'"

    def number(self, value: float) -> str:
        """A number in double precision: the shortest text that reads back as the number, cast.

        Examples
        --------
        >>> DIALECTS["postgres"].number(0.1), DIALECTS["bigquery"].number(float("inf"))
        ("CAST('0.1' AS DOUBLE PRECISION)", "CAST('inf' AS FLOAT64)")
        """
        return f"CAST('{float(value)!r}' AS {self.double})"

    def as_number(self, column: str) -> str:
        """A column in double precision."""
        return f"CAST({self.identifier(column)} AS {self.double})"

    def as_text(self, column: str) -> str:
        """A column as text: the digits of an integer, or the text."""
        return f"CAST({self.identifier(column)} AS {self.string})"


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _check(argument: str, name: str, what: str) -> None:
    if not name or not name.isprintable():
        raise InputError(argument, f"{what} in SQL must be printable and not empty", got=repr(name))


_BACKSLASHES = {"'": "\\'", "\\": "\\\\"}
_ALL = (
    SqlDialect("duckdb"),
    SqlDialect("postgres", double="DOUBLE PRECISION", fence="OFFSET 0"),
    SqlDialect("spark", string="STRING", quote="`", escapes=_BACKSLASHES, searches=True),
    SqlDialect("databricks", string="STRING", quote="`", escapes=_BACKSLASHES, searches=True, run=False),
    SqlDialect("snowflake", escapes={"'": "''", "\\": "\\\\"}, folds=True, limited=True, run=False),
    SqlDialect(
        "bigquery", double="FLOAT64", string="STRING", quote="`", escapes=_BACKSLASHES, md5="TO_HEX(MD5({}))",
        limited=True, run=False,
    ),
)  # fmt: skip
DIALECTS: Mapping[str, SqlDialect] = MappingProxyType({one.name: one for one in _ALL})
"""The supported engines, by name."""


def dialect_of(name: str) -> SqlDialect:
    """The dialect of this name.

    Examples
    --------
    >>> dialect_of("snowflake").run
    False
    """
    return DIALECTS[one_of("dialect", name, tuple(DIALECTS))]


COLUMNS = ("plan", "part", "bin", "records")
"""The columns of the answer."""


@dataclass(frozen=True)
class RecordRequirement:
    """A requirement on every record: in words, and as a condition in SQL."""

    words: str
    condition: str


def counting_query(plan: CountingPlan, dialect: str, table: str) -> str:
    """Write the query that counts for a plan.

    Parameters
    ----------
    plan
        The counting plan.
    dialect
        `duckdb`, `postgres`, `spark`, `databricks`, `snowflake` or `bigquery`.
    table
        The name of the table, with points between its parts.

    Returns
    -------
    str
        One statement. **Its answer is private**: the columns `plan`, `part`, `bin` and `records`.

    Raises
    ------
    InputError
        If a name cannot be written in this dialect, or the query would be longer than the engine permits.

    Examples
    --------
    >>> import duckdb
    >>> from confide.candidates import Candidates
    >>> plan = CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0, candidates=Candidates.unit(3))
    >>> query = counting_query(plan, "duckdb", "records")
    >>> with duckdb.connect() as database:
    ...     _ = database.execute("CREATE TABLE records AS SELECT unnest([0.2, 0.5, 0.7, NULL]) AS s")
    ...     [row[1:] for row in database.execute(query).fetchall()]
    [(0, -1, 1), (0, 0, 2), (0, 1, 1)]
    """
    spoken = dialect_of(dialect)
    return head(plan, spoken) + statement(plan, spoken, spoken.relation(table))


def head(plan: CountingPlan, spoken: SqlDialect) -> str:
    """The comments before a query."""
    of = "; ".join([f"plan {plan.digest}", f"{plan.bins} candidates", *([] if plan.score is None else [plan.score])])
    checked = "run by confide's tests" if spoken.run else "checked by parsing, not run on this engine"
    return (
        f"-- Counts of nonconformity scores for `confide calibrate --counts`: {of}.\n"
        "-- The answer is PRIVATE, as the records are: keep it where they are kept.\n"
        f"-- For {spoken.name}, {checked}.\n"
    )


def statement(plan: CountingPlan, spoken: SqlDialect, source: str) -> str:
    """The query without comments, for a table that is named in the engine's syntax."""
    rows, steps = _rows(plan, spoken, source)
    edges = plan.candidates.edges
    # The group of an unusable record may be unknown; its side is known.
    part = (
        "part" if plan.column is None else f"CASE WHEN finding = 0 AND {_in_range(plan, spoken)} THEN part ELSE 0 END"
    )
    scored = "\nUNION ALL\n".join(_scored(plan, spoken, rows, place) for place in range(len(plan.scores)))
    text = (
        f"WITH {steps},\n"
        f"confide_scored AS (\n{scored}\n),\n"
        f"confide_binned AS (\nSELECT\n{part} AS part,\n"
        f"CASE WHEN finding > 0 THEN 0 - finding WHEN {_in_range(plan, spoken)} THEN\n"
        f"{tree(edges, spoken)}\nELSE -1 END AS bin\nFROM confide_scored\n)\n"
        f"SELECT {spoken.text(plan.digest)} AS plan, part, bin, COUNT(*) AS records\n"
        "FROM confide_binned\nGROUP BY part, bin\nORDER BY part, bin\n"
    )
    if spoken.limited and len(text.encode()) > MOST_BYTES:
        raise InputError(
            "query",
            f"would have {len(text.encode()):,} bytes, and {spoken.name} accepts at most {MOST_BYTES:,}",
            remedy="Choose fewer candidates, for example 1000 of them, or fewer groups or classes",
        )
    return text


def requirements(plan: CountingPlan) -> list[str]:
    """The requirements that records under bin -1, -2, ... break, in words."""
    score, others = _requirements(plan, dialect_of("duckdb"))
    return [score, *(one.words for one in others)]


def tree(edges: NDArray[np.float64], spoken: SqlDialect) -> str:
    """The number of edges below a score, by a balanced tree of comparisons, or in Spark by a search in an array.

    Examples
    --------
    >>> print(tree(np.array([0.5]), dialect_of("duckdb")))
    CASE WHEN score <= CAST('0.5' AS DOUBLE) THEN 0
    ELSE 1 END
    """
    if spoken.searches and len(edges):
        steps = ", ".join(str(2**power) for power in reversed(range(len(edges).bit_length())))
        held = f"CAST(split('{','.join(map(repr, edges.tolist()))}', ',') AS ARRAY<DOUBLE>)"  # folded into one value
        return f"aggregate(array({steps}), 0, (p, w) -> IF(get({held}, p + w - 1) < score, p + w, p))"

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        least = spoken.number(edges[middle])
        return f"CASE WHEN score <= {least} THEN {between(low, middle)}\nELSE {between(middle + 1, high)} END"

    return between(0, len(edges))


def _rows(plan: CountingPlan, spoken: SqlDialect, source: str) -> tuple[str, str]:
    """The rows that count, as a step's name and the steps to it: complete ones, a bounded number of each person."""
    numbers, texts = _read(plan)
    columns = ", ".join(spoken.identifier(name) for name in dict.fromkeys([*numbers, *texts]))
    complete = [f"{spoken.as_number(name)} <= {spoken.number(np.inf)}" for name in numbers]
    complete += [f"{spoken.as_text(name)} <> ''" for name in texts]
    where = "\nWHERE " + "\nAND ".join(dict.fromkeys(complete)) if plan.skip_incomplete else ""
    steps = f"confide_rows AS (\nSELECT {columns}\nFROM {source}{where}\n)"
    people = plan.people
    if people is None:
        return "confide_rows", steps
    person, order = spoken.identifier(people.person), [spoken.identifier(name) for name in people.order]
    keys = [f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END, {name}" for name in order]
    if people.sample is not None:
        drawn = " || ':' || ".join([spoken.text(people.sample), *map(spoken.as_text, people.order)])
        keys.insert(0, spoken.md5.format(f"{drawn} || ':'"))
        keys[0] = f"CASE WHEN {keys[0]} IS NULL THEN 1 ELSE 0 END, {keys[0]}"
    window = f"OVER (PARTITION BY {person} ORDER BY {', '.join(keys)})"
    kept = f"confide_place <= {people.most} OR confide_place <> confide_rank OR {person} IS NULL"
    steps += (
        f",\nconfide_placed AS (\nSELECT *,\nROW_NUMBER() {window} AS confide_place,\nRANK() {window} AS confide_rank\n"
        f"FROM confide_rows\n),\nconfide_kept AS (\nSELECT * FROM confide_placed\nWHERE {kept}\n)"
    )
    return "confide_kept", steps


def _read(plan: CountingPlan) -> tuple[list[str], list[str]]:
    """The columns that are read as numbers, and those that are read as names."""
    texts = [*plan.labels, *([] if plan.column is None else [plan.column])]
    return plan.numbers, texts if plan.people is None else [*texts, plan.people.person, *plan.people.order]


def _scored(plan: CountingPlan, spoken: SqlDialect, rows: str, place: int) -> str:
    """The step for one score of a record: the score, its part, and the error of the record."""
    part = str(place)
    if plan.column is not None:
        whens = [f"WHEN {spoken.text(name)} THEN {i}" for i, name in enumerate(_named(plan))]
        part = f"CASE {spoken.as_text(plan.column)} {' '.join(whens)} END"
    _, others = _requirements(plan, spoken)
    finding = "0"
    for number, one in reversed(list(enumerate(others, start=2))):
        finding = f"CASE WHEN {one.condition} THEN {finding} ELSE {number} END"
    score = _score(plan.what, plan.scores[place], spoken)
    fence = f"\n{spoken.fence}" if spoken.fence else ""
    return f"(SELECT\n{score} AS score,\n{part} AS part,\n{finding} AS finding\nFROM {rows}{fence})"


def _score(what: Any, name: str | None, spoken: SqlDialect) -> str:
    """The score, in double precision."""
    if isinstance(what, ScoreColumn):
        return spoken.as_number(what.column)
    one = spoken.number(1.0)
    if isinstance(what, ClassColumns):
        columns = [spoken.as_number(column) for column in what.probabilities]
        own = columns if len(columns) > 1 else [f"({one} - {columns[0]})", columns[0]]
        whens = [f"WHEN {spoken.text(name)} THEN {p}" for name, p in zip(_labels(what), own, strict=True)]
        return f"{one} - CASE {spoken.as_text(str(what.label))}\n" + "\n".join(whens) + "\nEND"
    f, y = [spoken.as_number(column) for column in what.predictions], spoken.as_number(str(what.target))
    if name == "absolute_residual":
        return f"ABS({y} - {f[0]})"
    below, above = f"({f[0]} - {y})", f"({y} - {f[1]})"
    if name == "cqr":
        return f"CASE WHEN {below} >= {above} THEN {below} ELSE {above} END"
    return below if name == "cqr_low" else above


def _requirements(plan: CountingPlan, spoken: SqlDialect) -> tuple[str, list[RecordRequirement]]:
    """The requirement on the score, in words; and the other requirements on every record."""
    what, found = plan.what, []
    score = (
        f"column {what.column!r} must hold a number" if isinstance(what, ScoreColumn) else "the score must be a number"
    )
    score += f" {score_kind(plan.scores[0]).range_text} (not missing, not NaN)"
    if isinstance(what, ClassColumns):
        score = "the probability of the record's own class must be between 0 and 1 (not missing, not NaN)"
        found.append(_one_of(str(what.label), _labels(what), "classes", spoken))
    if isinstance(what, TargetColumns):
        score = "columns of predictions and targets must not be too far apart to be subtracted"
        for column in (*what.predictions, str(what.target)):
            number, end = spoken.as_number(column), spoken.number(np.inf)
            words = f"column {column!r} must hold a number that is finite (not missing, not NaN)"
            found.append(RecordRequirement(words, f"{number} > {spoken.number(-np.inf)} AND {number} < {end}"))
    if plan.column is not None and plan.request.by == "group":
        found.append(_one_of(plan.column, _named(plan), "groups", spoken))
    if plan.people is not None:
        person, apart = plan.people.requirements
        found.append(RecordRequirement(person, f"{spoken.identifier(plan.people.person)} IS NOT NULL"))
        found.append(RecordRequirement(apart, "confide_place = confide_rank"))
    return score, found


def _one_of(column: str, names: list[str], what: str, spoken: SqlDialect) -> RecordRequirement:
    some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    words = f"column {column!r} must hold one of the {len(names)} {what} ({some})"
    return RecordRequirement(words, f"{spoken.as_text(column)} IN ({', '.join(map(spoken.text, names))})")


def _named(plan: CountingPlan) -> list[str]:
    """The values of the column that divides the records, in the order of the parts."""
    return _labels(plan.what) if plan.request.by == "class" else list(map(canonical_name, plan.request.names))


def _labels(what: Any) -> list[str]:
    """The values of a label, in the order of the classes: names, or positions."""
    names = what.classes or ()
    return [str(i) if what.label_positions else canonical_name(name) for i, name in enumerate(names)]


def _in_range(plan: CountingPlan, spoken: SqlDialect) -> str:
    kind = score_kind(plan.scores[0])
    inside = f"score >= {spoken.number(kind.low)} AND score <= {spoken.number(kind.high)}"
    return f"({inside} OR score = {spoken.number(np.inf)})" if kind.takes_infinity else inside
