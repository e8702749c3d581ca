"""Which requests are identical, and whether data are the same."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.ledger.cost import Group, check_group, check_name

LEAST_KEY = 16
_BLOCK = 2**20


@dataclass(frozen=True)
class Dataset:
    """The data that a release is about.

    Parameters
    ----------
    name
        The name under which its budget is kept, 1 to 200 printable characters. It is public to readers of the ledger.
    group
        The cell (partition, cell) of a public partition that the release is about; releases about different cells
        of one partition cost their maximum instead of their sum, if `records_per_person` bounds the records of a person
        in all cells together.
    fingerprint
        From `fingerprint`: binds the name to these data. A data set that was opened with one refuses every request
        about others, where an unbound one refuses only a request that it has answered before.
    one_cell
        Whether each person is in one cell only of the partition. It matters where a person's records are bounded in
        each table (`People`): unless it is true, such a release is refused once other cells of its partition were
        charged, because a person in two cells would lose both.

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
        if self.fingerprint is not None and not is_hexadecimal(self.fingerprint, least=64):
            raise InputError("fingerprint must be 64 hexadecimal digits, as `confide.ledger.fingerprint` makes them")
        if self.one_cell not in (None, True, False):
            raise InputTypeError(f"one_cell must be True, False or None; found {type(self.one_cell).__name__}")


def fingerprint(key: bytes, data: Path | NDArray[Any]) -> str:
    """A keyed fingerprint (HMAC-SHA-256): it tells the owner of the key whether data are the same, others nothing.

    Parameters
    ----------
    key
        At least 16 secret random bytes, kept apart from the ledger; `secrets.token_bytes(32)` makes some. Whoever
        has it can test guesses of the whole data set against the fingerprint.
    data
        A file, read in blocks, or a numeric array.

    Raises
    ------
    InputError, InputTypeError
        If the key is too short or the data are neither.

    Examples
    --------
    >>> key = bytes(range(32))
    >>> fingerprint(key, np.array([0.5, 0.25])) == fingerprint(key, np.array([0.5, 0.75]))
    False
    """
    if not isinstance(key, bytes) or len(key) < LEAST_KEY:
        raise InputError(f"key must be at least {LEAST_KEY} secret random bytes")
    digest = hmac.new(key, digestmod=hashlib.sha256)
    if isinstance(data, Path):
        try:
            with data.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise InputError(f"file {str(data)!r} cannot be read: {error.strerror}") from None
    elif isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        digest.update(f"{data.dtype.str} {data.shape}\n".encode())
        digest.update(np.ascontiguousarray(data).tobytes())
    else:
        raise InputTypeError(f"data must be a Path or a numeric array; found {type(data).__name__}")
    return digest.hexdigest()


def keyed_digest(key: str, content: bytes) -> str:
    """HMAC-SHA-256 of what a mechanism saw, under a ledger's own key.

    Examples
    --------
    >>> keyed_digest("ab" * 32, b"counts") == keyed_digest("ba" * 32, b"counts")
    False
    """
    return hmac.new(bytes.fromhex(key), content, hashlib.sha256).hexdigest()


def request_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a request's public fields in canonical JSON: equal requests have equal digests.

    Examples
    --------
    >>> request_digest({"alpha": "1/10", "epsilon": 1.0}) == request_digest({"epsilon": 1.0, "alpha": "1/10"})
    True
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def is_hexadecimal(text: object, *, least: int = 32) -> bool:
    """Whether it is a text of `least` to 64 hexadecimal digits: a token, or a digest if all 64 are asked for."""
    return isinstance(text, str) and least <= len(text) <= 64 and not set(text) - set("0123456789abcdef")
