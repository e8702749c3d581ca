"""Equality of names, of requests by a digest, and of data by a keyed fingerprint.

Names that differ only in Unicode form (an accented letter written as one character or as two) or in case are one name.
Other similar names, letters of other scripts included, cause a warning and stay two.
"""

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.ledger.cost import Group, check_group, check_name
from confide.support import require

# Names

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
    differing = [(word, other) for word, other in zip(words, others, strict=False) if word != other]
    if len(words) != len(others) or len(differing) != 1:
        return False
    ((word, other),) = differing
    short, long = sorted((word, other), key=len)
    if len(long) < _LEAST_WORD or short.isdecimal() or long.isdecimal() or len(long) - len(short) > 1:
        return False
    # From the first difference on: a letter added, replaced, or exchanged with the next
    unequal = (place for place, (left, right) in enumerate(zip(short, long, strict=False)) if left != right)
    start = next(unequal, len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    exchanged = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or exchanged == long[start:]


# Data


@dataclass(frozen=True)
class Dataset:
    """The data that a release is about.

    Parameters
    ----------
    name
        The name of its account, 1 to 200 printable characters. It is public to readers of the ledger.
    group
        The cell (partition, cell) of a public partition that the release is about. Releases about different cells of
        one partition cost their maximum instead of their sum, if `records_per_person` bounds the records of a person in
        all cells together.
    fingerprint
        From `confide.ledger.fingerprint`: binds the name to these data, so that every request about other data raises
        `OtherDataError`. Without a fingerprint, only a request that was answered before raises it for other data.
    one_cell
        True if each person is in only one cell of the partition. State it if each cell is a table of its own in which
        `ContributionBound` limits a person's records. Otherwise such a release raises an error if other cells of the
        partition were charged, because for a person in two cells both losses would add up.

    Examples
    --------
    >>> Dataset("patients 2024", ("region", "north")).group
    Group(partition='region', cell='north')
    """

    name: str
    group: Group | None = None
    fingerprint: str | None = None
    one_cell: bool | None = None

    def __post_init__(self) -> None:
        check_name("dataset", self.name)
        if self.group is not None:
            object.__setattr__(self, "group", check_group(self.group))
        is_digest = self.fingerprint is None or is_hexadecimal(self.fingerprint, least=64)
        must = "must be 64 hexadecimal digits, as returned by `confide.ledger.fingerprint`"
        require("fingerprint", is_digest, must)
        if self.one_cell not in (None, True, False):
            raise InputTypeError("one_cell", "must be True, False or None", got=type(self.one_cell).__name__)


# Smallest number of bytes of a key
LEAST_KEY = 16


def fingerprint(key: bytes, data: Path | NDArray[Any]) -> str:
    """Compute a keyed fingerprint (HMAC-SHA-256). Only the owner of the key can compare data with it.

    Parameters
    ----------
    key
        At least 16 secret random bytes, for example `secrets.token_bytes(32)`; store them apart from the ledger. An
        attacker with the key can test guesses of the whole data set against the fingerprint.
    data
        A file, read in blocks, or a numeric array.

    Raises
    ------
    InputError, InputTypeError
        If the key is too short, or the data are neither a file nor a numeric array.

    Examples
    --------
    >>> key = bytes(range(32))
    >>> fingerprint(key, np.array([0.5, 0.25])) == fingerprint(key, np.array([0.5, 0.75]))
    False
    """
    is_key = isinstance(key, bytes) and len(key) >= LEAST_KEY
    require("key", is_key, f"must be at least {LEAST_KEY} secret random bytes")
    digest = hmac.new(key, digestmod=hashlib.sha256)
    # The bytes of a file; or type, shape and values of an array
    if isinstance(data, Path):
        try:
            with data.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        except OSError as error:
            raise InputError("path", f"{str(data)!r} cannot be read: {error.strerror}") from None
    elif isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        digest.update(f"{data.dtype.str} {data.shape}\n".encode())
        digest.update(np.ascontiguousarray(data).tobytes())
    else:
        raise InputTypeError("data", "must be a Path or a numeric array", got=type(data).__name__)
    return digest.hexdigest()


# Requests, and digests


def keyed_digest(key: str, content: bytes) -> str:
    """HMAC-SHA-256 of a mechanism's input, under a ledger's own key."""
    return hmac.new(bytes.fromhex(key), content, hashlib.sha256).hexdigest()


def request_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a request's public fields in canonical JSON: equal requests have equal digests."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def is_hexadecimal(text: object, *, least: int = 32) -> bool:
    """Whether it is a text of `least` to 64 hexadecimal digits: a token, or a digest with `least=64`."""
    return isinstance(text, str) and least <= len(text) <= 64 and not set(text) - set("0123456789abcdef")
