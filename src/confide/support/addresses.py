"""Addresses of PostgreSQL servers: told from files, and shown without passwords."""

import re

_SCHEMES = ("postgresql://", "postgres://")
_NAMED = r"[^?@/:=& ]*"  # a password that lost its `?` has `=`
_HOST = r"(?:\[[\w.:%]*\]|[\w.%~-]*)(?::\d*)?"
_ADDRESS = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>{_NAMED})(?::[^/]*)?@)?"
    rf"(?P<place>{_HOST}(?:,{_HOST})*(?:/{_NAMED})?)(?:\?(?P<options>.*))?",
    re.IGNORECASE | re.DOTALL,
)


def names_server(place: object) -> bool:
    """Whether it is the address of a PostgreSQL server, and no file.

    Examples
    --------
    >>> names_server("postgresql://me@host/db"), names_server("budget.db")
    (True, False)
    """
    return isinstance(place, str) and place.lower().startswith(_SCHEMES)


def shown_address(address: str) -> str:
    """The address of a server as it may be shown: user, hosts and database; neither password nor options.

    What does not look like an address is not shown at all: anything in it could be a password.

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
    found = _ADDRESS.fullmatch(address)
    if found is None or (found["user"] is None and "@" in (found["options"] or "")):
        scheme, found_scheme, _ = address.partition("://")
        return f"{scheme}://..." if found_scheme else "..."
    user = "" if found["user"] is None else f"{found['user']}@"
    shown = f"{found['scheme']}{user}{found['place']}"
    return shown if shown.isprintable() else f"{found['scheme']}..."
