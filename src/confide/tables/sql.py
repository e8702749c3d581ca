"""SQL texts: quoting, and the few questions asked of DuckDB's type names."""

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_INTEGERS = {*_SIGNED, *(f"U{name}" for name in _SIGNED)}


def text(value: str) -> str:
    """A string literal.

    Examples
    --------
    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted column name.

    Examples
    --------
    >>> identifier("true label")
    '"true label"'
    """
    return '"' + name.replace('"', '""') + '"'


def select(what: str, source: str, rest: str = "") -> str:
    """A query, from parts that were quoted by `text` and `identifier`.

    Examples
    --------
    >>> select(identifier("score"), "source", "LIMIT 1")
    'SELECT "score" FROM source LIMIT 1'
    """
    return f"SELECT {what} FROM {source} {rest}"  # noqa: S608


def is_integer(kind: str) -> bool:
    """Whether a DuckDB type holds integers."""
    return kind in _INTEGERS


def is_number(kind: str) -> bool:
    """Whether a DuckDB type holds real numbers.

    Examples
    --------
    >>> is_number("DECIMAL(18,3)"), is_number("FLOAT[]"), is_number("VARCHAR")
    (True, False, False)
    """
    return kind in _INTEGERS or kind in ("FLOAT", "DOUBLE") or (kind.startswith("DECIMAL") and not kind.endswith("]"))


def is_text(kind: str) -> bool:
    """Whether a DuckDB type holds texts, plain or categorical."""
    return kind == "VARCHAR" or (kind.startswith("ENUM") and not kind.endswith("]"))


def list_element(kind: str) -> str | None:
    """The type of a list's elements, for lists of any or of fixed length; None for anything else.

    Examples
    --------
    >>> list_element("FLOAT[]"), list_element("DOUBLE[10]"), list_element("FLOAT")
    ('FLOAT', 'DOUBLE', None)
    """
    return kind[: kind.rindex("[")] if kind.endswith("]") else None


def is_plain(kind: str) -> bool:
    """Whether a value of this type fits into one CSV cell."""
    return not (kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "BIT", "VARIANT", "GEOMETRY")))


def in_words(kind: str) -> str:
    """What a column of this type holds, for messages. Never the type's own text: a categorical one lists values."""
    if list_element(kind) is not None:
        return "lists"
    if is_text(kind):
        return "text"
    if is_integer(kind):
        return "integers"
    if is_number(kind):
        return "numbers"
    if kind.startswith(("DATE", "TIME")):
        return "dates and times"
    return {"BOOLEAN": "true and false"}.get(kind, "values of another type")
