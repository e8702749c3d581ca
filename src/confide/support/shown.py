"""Texts for people: escaped text from other sources, addresses without passwords, numbers, and aligned columns."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

# Text from other sources, escaped for terminals

# Control characters (also those of eight bits), marks that change the direction of writing, and separators of lines and
# paragraphs; all letters of all languages are left
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LINES = re.compile("[\t\n]")


def escape_text(text: str) -> str:
    r"""Escape a text of one or several lines for a terminal.

    Examples
    --------
    >>> escape_text("one\n\x1b[31mtwo"), escape_text("Zoë\u202e")
    ('one\n\\x1b[31mtwo', 'Zoë\\u202e')
    """
    return _STEERS.sub(_escaped, text)


def escape_line(text: str) -> str:
    r"""Escape a name within a line, also its line breaks.

    Examples
    --------
    >>> escape_line("north\nsigned by the coordinator")
    'north\\nsigned by the coordinator'
    """
    return _LINES.sub(_escaped, escape_text(text))


def escape_json(text: str) -> str:
    r"""An equivalent JSON document without characters that control a terminal.

    Examples
    --------
    >>> escape_json('{"name": "\x9b31m"}')
    '{"name": "\\u009b31m"}'
    """
    return _STEERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]


# Addresses of PostgreSQL servers

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
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or (match["user"] is None and "@" in (match["options"] or "")):
        scheme, separator, _ = address.partition("://")
        return f"{scheme}://..." if separator else "..."
    user = "" if match["user"] is None else f"{match['user']}@"
    shown = f"{match['scheme']}{user}{match['place']}"
    return shown if shown.isprintable() else f"{match['scheme']}..."


# A password before the host, or an option with one
_SECRET = re.compile(r"[^/?@]*:[^;]*@|.*[?&;](ssl)?(password|token)=", re.IGNORECASE | re.DOTALL)


def has_password(address: str) -> bool:
    """Whether an address contains a password or a token, before its host or among its options."""
    _, separator, rest = address.partition("://")
    return bool(separator) and _SECRET.match(rest) is not None


# Numbers and columns


def short_number(value: float) -> str:
    """A number as people read it: four significant digits, infinities with their sign.

    Examples
    --------
    >>> short_number(0.123456), short_number(float("inf")), short_number(12345.678)
    ('0.1235', '+inf', '12,346')
    """
    if math.isinf(value):
        return f"{value:+}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def decimal_text(value: float, digits: int = 4) -> str:
    """A number with a few significant digits, and without an exponent unless it is astronomical.

    Examples
    --------
    >>> decimal_text(1e6), decimal_text(1e-6), decimal_text(0.123456)
    ('1,000,000', '0.000001', '0.1235')
    """
    text = f"{value:.{digits}g}"
    return text if math.isinf(value) or not 1e-15 < abs(value) < 1e15 else f"{Decimal(text):,f}"


def chance_text(chance: float) -> str:
    """A probability in percent."""
    return f"{chance:.1%}" if chance >= 0.0005 else "below 0.05%"


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Two aligned columns, one line for each row, for any content of the cells.

    Examples
    --------
    >>> print(aligned([("alpha", "0.1"), ("epsilon", "1")]))
      alpha    0.1
      epsilon  1
    """
    cells = [(escape_line(name), escape_line(value)) for name, value in rows]
    width = max(len(name) for name, _ in cells)
    return "\n".join(f"  {name:<{width}}  {value}".rstrip() for name, value in cells)
