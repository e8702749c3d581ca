"""Text that others wrote, made harmless for screens: what would steer a terminal is shown as an escape sequence.

Control characters (also those of eight bits), marks that turn the direction of writing, and separators of lines and
paragraphs. All other letters of all languages stay as they are.
"""

import re

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
