"""Data sets, and equality of data by a keyed fingerprint and of requests by a digest."""

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
from confide.support import require


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
