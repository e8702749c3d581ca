"""Addresses of PostgreSQL servers: recognised, and shown without passwords."""

import re

_SCHEMES = ("postgresql://", "postgres://")
_NAMED = r"[^?@/:=& ]*"  # a password whose `?` is missing contains `=`
_HOST = r"(?:\[[\w.:%]*\]|[\w.%~-]*)(?::\d*)?"
_ADDRESS = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>{_NAMED})(?::[^/]*)?@)?"
    rf"(?P<place>{_HOST}(?:,{_HOST})*(?:/{_NAMED})?)(?:\?(?P<options>.*))?",
    re.IGNORECASE | re.DOTALL,
)


def names_server(place: object) -> bool:
    """Whether a text is the address of a PostgreSQL server.

    Examples
    --------
    >>> names_server("postgresql://me@host/db"), names_server("budget.db")
    (True, False)
    """
    return isinstance(place, str) and place.lower().startswith(_SCHEMES)


def shown_address(address: str) -> str:
    """The printable part of a server's address: user, hosts and database; neither password nor options.

    Nothing is printed of a text that does not look like an address: any part of it could be a password.

    Examples
    --------
    >>> shown_address("postgresql://me:a?b@host:5432/db?sslpassword=x")
    'postgresql://me@host:5432/db'
    >>> shown_address("postgresql://me:a/b@host/db")
    'postgresql://...'
    >>> shown_address("postgresql://me@host/dbsslpassword=x")
    'postgresql://...'
    >>> shown_address("budget.db")
    '...'
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or (match["user"] is None and "@" in (match["options"] or "")):
        scheme, found_scheme, _ = address.partition("://")
        return f"{scheme}://..." if found_scheme else "..."
    user = "" if match["user"] is None else f"{match['user']}@"
    shown = f"{match['scheme']}{user}{match['place']}"
    return shown if shown.isprintable() else f"{match['scheme']}..."


_SECRET = re.compile(r"[^/?@]*:[^;]*@|.*[?&;](ssl)?(password|token)=", re.IGNORECASE | re.DOTALL)


def has_password(address: str) -> bool:
    """Whether an address contains a password or a token, before its host or among its options.

    Examples
    --------
    >>> [has_password(f"postgresql://{rest}") for rest in ("me:secret@host", "host/db?password=x", "me@host:5432/db")]
    [True, True, False]
    >>> has_password("duckdb:///folder/a:b@c.duckdb")
    False
    """
    _, scheme, rest = address.partition("://")
    return bool(scheme) and _SECRET.match(rest) is not None
