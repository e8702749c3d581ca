"""Which names are one name, and which only look like one.

Names that differ in Unicode form (an accented letter written as one character or as two) or in case alone are one
name. Names that look alike otherwise, letters of other scripts included, are pointed out and stay two.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

_LOOKALIKES = {
    "CYRILLIC": "\u0430a \u0432b \u0435e \u043ak \u043cm \u043dh \u043eo \u0440p \u0441c \u0442t \u0443y \u0445x"
    " \u0455s \u0456i \u0458j \u04bbh \u04c0l \u04cfl \u0501d \u051bq \u051dw \u0475v \u0454e \u04afy",
    "GREEK": "\u03b1a \u03b2b \u03b5e \u03b7n \u03b9i \u03bak \u03bcu \u03bdv \u03bfo \u03c1p \u03c3o \u03c4t"
    " \u03c5u \u03c7x \u03b6z \u03b3y \u03f2c \u03f3j",
    "ARMENIAN": "\u0585o \u057du \u0570h \u0578n \u0581g \u0566q",
    "LATIN": "\u0131i \u0251a \u0261g \u0269i \u028bv",
    "DIGIT": "0o 1l",
}
"""Small letters that look like a Latin one, by their script; the commonest of Unicode's table of confusables."""

_PAIRS = {pair[0]: pair[1] for pairs in _LOOKALIKES.values() for pair in pairs.split()} | {"i": "l"}
_PLAIN = str.maketrans({letter: like.replace("i", "l") for letter, like in _PAIRS.items()})


def name_key(name: str) -> str:
    """The same for names that are one name: Unicode's canonical caseless matching (The Unicode Standard, D145).

    Examples
    --------
    >>> name_key("Caf\u00e9") == name_key("cafe\u0301"), name_key("cafe") == name_key("caf\u00e9")
    (True, False)
    """
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that look like this one and are others.

    They agree once compatibility forms, case, accents, blanks and punctuation are set aside, and letters and digits
    that look like a Latin letter are taken for it. Or they differ by one typing error in one word of five letters or
    more: a letter too many, too few or another, or two letters exchanged. Numbers are compared digit by digit, because
    years and wards differ in one.

    Examples
    --------
    >>> similar("p\u0430tients 2024", ["patients-2024", "patients 2025"]), similar("patient", ["pateint", "inpatient"])
    (['patients-2024'], ['pateint'])
    """
    return [
        other
        for other in known
        if (_skeleton(other) == _skeleton(name) or _mistyped(_words(other), _words(name)))
        and name_key(other) != name_key(name)
    ]


_LEAST_WORD = 5
_WORD = re.compile(r"\d+|[^\W\d_]+")


def _letters(name: str) -> str:
    """Without case and compatibility forms, each letter as the Latin one that it looks like."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())


def _skeleton(name: str) -> str:
    letters = _letters(name).translate(_PLAIN)
    kept = "".join(letter for letter in letters if letter.isalnum())
    return kept or letters


def _words(name: str) -> list[str]:
    """Its words and numbers, without accents; letters of words as the Latin ones that they look like."""
    plain = "".join(letter for letter in _letters(name) if not unicodedata.combining(letter))
    return [word if word.isdecimal() else word.translate(_PLAIN) for word in _WORD.findall(plain)]


def _mistyped(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether all words agree but one, in which a single typing error makes the difference."""
    differing = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    if len(one) != len(other) or len(differing) != 1:
        return False
    short, long = sorted(differing[0], key=len)
    if len(long) < _LEAST_WORD or short.isdecimal() or long.isdecimal() or len(long) - len(short) > 1:
        return False
    start = next((place for place, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    exchanged = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or exchanged == long[start:]
