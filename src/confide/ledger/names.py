"""Equality and similarity of names of data sets.

Names that differ only in Unicode form (an accented letter written as one character or as two) or in case are one name.
Other similar names, letters of other scripts included, cause a warning and stay two.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from os.path import commonprefix

from confide.errors import SimilarNameWarning
from confide.support import caller_stacklevel

# Lower-case letters that look like a Latin one, by script; the most frequent of Unicode's table of confusables
_LOOKALIKES = {
    "CYRILLIC": "\u0430a \u0432b \u0435e \u043ak \u043cm \u043dh \u043eo \u0440p \u0441c \u0442t \u0443y \u0445x"
    " \u0455s \u0456i \u0458j \u04bbh \u04c0l \u04cfl \u0501d \u051bq \u051dw \u0475v \u0454e \u04afy",
    "GREEK": "\u03b1a \u03b2b \u03b5e \u03b7n \u03b9i \u03bak \u03bcu \u03bdv \u03bfo \u03c1p \u03c3o \u03c4t"
    " \u03c5u \u03c7x \u03b6z \u03b3y \u03f2c \u03f3j",
    "ARMENIAN": "\u0585o \u057du \u0570h \u0578n \u0581g \u0566q",
    "LATIN": "\u0131i \u0251a \u0261g \u0269i \u028bv",
    "DIGIT": "0o 1l",
}
_PAIRS = [tuple(pair) for pairs in _LOOKALIKES.values() for pair in pairs.split()]

# Replaces each by the Latin letter; i also looks like l
_PLAIN = str.maketrans({"i": "l"} | {letter: latin.replace("i", "l") for letter, latin in _PAIRS})

# Words without a digit, or numbers
_WORD = re.compile(r"\d+|[^\W\d_]+")

# Shorter words that differ in one letter are often different words
_LEAST_WORD = 5


def name_key(name: str) -> str:
    """A key that is equal for equal names: Unicode's canonical caseless matching (The Unicode Standard, D145).

    Examples
    --------
    >>> name_key("Caf\u00e9") == name_key("cafe\u0301"), name_key("cafe") == name_key("caf\u00e9")
    (True, False)
    """
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def similar(name: str, known: Iterable[str]) -> list[str]:
    """The existing names that are similar to this one but not equal.

    Names are similar if they agree apart from compatibility forms, case, accents, blanks, punctuation and lookalikes of
    Latin letters, or differ by one typing error in one word of at least five letters. Numbers must agree, because years
    and wards differ in one digit.

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


def _letters(name: str) -> str:
    """The name without case and compatibility forms."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())


def _skeleton(name: str) -> str:
    letters = _letters(name).translate(_PLAIN)
    return "".join(letter for letter in letters if letter.isalnum()) or letters


def _words(name: str) -> list[str]:
    """The words and numbers of a name, without accents; letters of words are replaced by similar Latin ones."""
    plain = "".join(letter for letter in _letters(name) if not unicodedata.combining(letter))
    return [word if word.isdecimal() else word.translate(_PLAIN) for word in _WORD.findall(plain)]


def _mistyped(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether all words agree except one, which differs by a single typing error."""
    if len(words) != len(others):
        return False
    differing = [(word, other) for word, other in zip(words, others, strict=True) if word != other]
    return len(differing) == 1 and _is_typing_error(*differing[0])


def _is_typing_error(word: str, other: str) -> bool:
    """Whether two words differ by a letter that was added, replaced, or exchanged with the next."""
    short, long = sorted((word, other), key=len)
    if len(long) < _LEAST_WORD or short.isdecimal() or long.isdecimal() or len(long) - len(short) > 1:
        return False
    # From the first difference on
    agree = len(commonprefix((short, long)))  # noqa: RUF071 - letter by letter
    short = short[agree:]
    long = long[agree:]
    if len(short) < len(long):
        return short == long[1:]
    exchanged = short[1:2] + short[:1] + short[2:]
    return short[1:] == long[1:] or exchanged == long


def warn_of_similar_names(name: str, known: Iterable[str]) -> None:
    """Warn if a new name is similar to existing ones."""
    if names := similar(name, known):
        shown = ", ".join(map(repr, names[:3]))
        text = f"dataset {name!r} is new to the ledger and looks like {shown}; the same people must keep one name"
        warnings.warn(SimilarNameWarning(text), stacklevel=caller_stacklevel())
