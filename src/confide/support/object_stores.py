"""Objects of Amazon S3 and compatible stores, Google Cloud Storage and Azure Blob Storage, by obstore.

Credentials come from the environment or the machine, never from an address. Errors of a store may contain names and
signatures, and are replaced by fixed texts. An object is written as a whole, and only one of several jobs can write a
new name.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from confide.errors import ConfideError, InputError
from confide.support.checks import require
from confide.support.installed import require_extra

# The protocol of each scheme
_FAMILIES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}

# SCHEME://BUCKET/KEY, for Azure also SCHEME://CONTAINER@ACCOUNT/KEY; neither a user nor options are part of a bucket
_ADDRESS = re.compile(
    r"(?P<scheme>\w+)://(?P<bucket>[^/?#@:*\[\]]+)"
    r"(?P<account>@[a-z0-9]{3,24}\.(dfs|blob)\.core\.windows\.net)?(/(?P<key>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_CREDENTIALS = (
    "taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or from the role of the machine"
)

# The meaning of an error of a store by the first of these patterns that it contains
_REASONS = {
    r"NoSuchBucket|ContainerNotFound|bucket does not exist": "there is no such bucket",
    r"configured region|AuthorizationHeaderMalformed| 301 ": "the bucket is in another region; set AWS_REGION",
    r" 40[13] |169\.254\.169\.254|metadata|[Cc]redential|token|Account must": "there is no permission to do that, or "
    f"credentials are missing or rejected; they are {_CREDENTIALS}",
    r"parsing Path|domain character": "no object can have such a name",
    r"error sending request|timed out|dns": "it cannot be reached; check the network, and AWS_ENDPOINT_URL, "
    "GOOGLE_BASE_URL or AZURE_STORAGE_ENDPOINT if it is a server of your own",
    r"": "the store rejects the request",
}

# Larger objects are sent in parts; stores then do not compare names
_IN_ONE_REQUEST = 2**28


def names_object(place: object) -> bool:
    """Whether a text is an address of an object store.

    Examples
    --------
    >>> names_object("s3://bucket/x.parquet"), names_object("bucket/x.parquet"), names_object("hdfs://host/x")
    (True, False, False)
    """
    return isinstance(place, str) and "://" in place and place.partition("://")[0].lower() in _FAMILIES


def store_reason(error: Exception) -> str | None:
    """The meaning of a store's error, if an error of a library repeats it."""
    return next((reason for reason in _REASONS.values() if reason in str(error)), None)


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a prefix, in an object store, with methods named as those of `pathlib.Path`.

    Parameters
    ----------
    scheme
        The scheme of its address.
    bucket
        The bucket; Azure calls it a container.
    key
        The name in the bucket, without a slash at its ends.
    account
        For Azure: the address of the storage account, `@ACCOUNT.dfs.core.windows.net`, if the address has one.
    """

    scheme: str
    bucket: str
    key: str
    account: str = ""

    @classmethod
    def of(cls, text: str) -> "ObjectPath":
        """The object with this address.

        An address with a user, a key or options raises an error that repeats none of them. A part that is empty, `.` or
        `..`, which stores interpret differently, also raises one.

        Examples
        --------
        >>> ObjectPath.of("abfss://container@account.dfs.core.windows.net/a/x.csv").parts
        ('container', 'a', 'x.csv')
        """
        match = _ADDRESS.fullmatch(text)
        scheme = text.partition("://")[0].lower()
        key = match["key"] or "" if match else ""
        has_options = re.search(r"\?[^/]*=", key)
        if match is None or (match["account"] and _FAMILIES[scheme] != "az") or has_options:
            must = (
                f"{scheme}://... must be {scheme}://BUCKET/NAME, for Azure also "
                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME, without keys or options: "
                f"credentials are {_CREDENTIALS}"
            )
            raise InputError("address", must)
        key = key.removesuffix("/")
        is_plain = not key or {"", ".", ".."}.isdisjoint(key.split("/"))
        require("address", is_plain, f"{text!r} must not have a part that is empty, . or ..")
        return cls(scheme, match["bucket"], key, (match["account"] or "").lower())

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}{self.account}/{self.key}"

    def at(self, key: str) -> "ObjectPath":
        """Another object in the same bucket."""
        other = replace(self, key=key)
        other.__dict__["store"] = self.store  # one connection for all objects of a bucket
        return other

    def __truediv__(self, name: str) -> "ObjectPath":
        return self.at(f"{self.key}/{name}".removeprefix("/"))

    @cached_property
    def store(self) -> Any:
        """The store of the bucket in obstore."""
        with self.errors_in_words("used"):
            from obstore.store import from_url

            return from_url(
                f"{'abfss' if self.account else _FAMILIES[self.scheme]}://{self.bucket}{self.account}",
                client_options={"allow_http": True},  # of a server of one's own
                retry_config={"max_retries": 5},
            )

    @contextmanager
    def errors_in_words(self, done: str) -> Iterator[None]:
        """Replace every error of the store by one with a remedy and without further details."""
        require_extra(f"{self.scheme}://", "stores", "obstore", "fsspec")
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except ConfideError:
            raise
        except AlreadyExistsError:
            raise FileExistsError(str(self)) from None
        except (BaseError, OSError, ValueError) as error:
            reason = next(meaning for pattern, meaning in _REASONS.items() if re.search(pattern, str(error)))
            raise InputError("address", f"{str(self)!r} cannot be {done}: {reason}") from None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its name, the bucket first."""
        return (self.bucket, *PurePosixPath(self.key).parts)

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.parts[-1]

    @property
    def suffix(self) -> str:
        """The suffix of its name."""
        return PurePosixPath(self.key).suffix

    def can_be(self, other: object) -> bool:
        """Whether two addresses can be those of one object: Azure's may leave out the account."""
        return (
            isinstance(other, ObjectPath)
            and (_FAMILIES[self.scheme], self.parts) == (_FAMILIES[other.scheme], other.parts)
            and (self.account == other.account or not (self.account and other.account))
        )

    def size(self) -> int | None:
        """The number of bytes; None if there is no such object."""
        with self.errors_in_words("looked at"), suppress(FileNotFoundError):
            return int(self.store.head(self.key)["size"]) if self.key else None
        return None

    def is_file(self) -> bool:
        """Whether there is such an object."""
        return self.size() is not None

    def is_dir(self) -> bool:
        """Whether there are objects below this prefix."""
        return any(True for _ in self.below())

    def exists(self) -> bool:
        """Whether there is such an object, or one below this prefix."""
        return self.is_file() or self.is_dir()

    def below(self, *, recursive: bool = True) -> Iterator["ObjectPath"]:
        """The objects below this prefix."""
        prefix = self.key or None
        with self.errors_in_words("listed"):
            chunks = self.store.list(prefix) if recursive else [self.store.list_with_delimiter(prefix)["objects"]]
            for chunk in chunks:
                yield from (self.at(entry["path"]) for entry in chunk)

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """The bytes of the object, fetched as they are read."""
        return io.BufferedReader(ObjectReader(self), 2**20)

    def write(self, file: Path, *, overwrite: bool) -> None:
        """Upload a finished file: the store shows the old content until the new one is complete.

        Without `overwrite`, raises `FileExistsError` if there is such an object by now.
        """
        create = not overwrite and file.stat().st_size <= _IN_ONE_REQUEST
        with self.errors_in_words("written"):
            try:
                self.store.put(self.key, file, mode="create" if create else "overwrite")
            except NotImplementedError:  # AWS_CONDITIONAL_PUT=disabled, for servers that cannot compare names
                self.store.put(self.key, file, mode="overwrite")

    def unlink(self) -> None:
        """Delete the object."""
        with self.errors_in_words("deleted"):
            self.store.delete(self.key)


class ObjectReader(io.RawIOBase):
    """The bytes of an object, fetched as they are read.

    Parameters
    ----------
    place
        The object.
    size
        Its number of bytes, if it is known.
    """

    def __init__(self, place: ObjectPath, size: int | None = None) -> None:
        size = place.size() if size is None else size
        if size is None:
            raise InputError("path", f"{str(place)!r} does not exist")
        self._place = place
        self._position = 0
        self.size = size

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fetch the bytes at the position."""
        length = max(0, min(len(buffer), self.size - self._position))
        if length:
            buffer[:length] = self.fetch(self._position, length)
        self._position += length
        return length

    def fetch(self, start: int, length: int) -> memoryview:
        """Fetch bytes by their position in the object."""
        with self._place.errors_in_words("read"):
            return memoryview(self._place.store.get_range(self._place.key, start=start, length=length))


FileLocation: TypeAlias = Path | ObjectPath
"""A local file, or an object in a store."""


def as_place(place: str | FileLocation) -> FileLocation:
    """The object with this address, or else the file with this name.

    Examples
    --------
    >>> str(as_place("s3://bucket/released.json")), str(as_place("released.json"))
    ('s3://bucket/released.json', 'released.json')
    """
    if isinstance(place, ObjectPath):
        return place
    if isinstance(place, str) and names_object(place) and not Path(place).exists():
        return ObjectPath.of(place)
    return Path(place)
