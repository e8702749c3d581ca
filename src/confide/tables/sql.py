"""SQL texts: quoting, from parts that are never pasted."""


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
