"""Records of estimators: which of them calibrate, each drawn independently of all others; their rows and targets."""

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d, indexable
from sklearn.utils.validation import assert_all_finite, check_consistent_length

from confide.arrays import as_array, as_vector, is_missing, refuse_other_rows
from confide.errors import InputError, InputTypeError
from confide.selection import uniforms
from confide.support import raise_for_rows


def calibrating(share: Any, seed: Any, n: int, *columns: Any) -> NDArray[np.bool_]:
    """The records of n that calibrate, bool, shape (n,); `columns` are the contents of the records.

    Proposition. Let D' be D without one record. Then the parts of D' are the parts of D without that record: one part
    lacks the record, the other part is unchanged. If the record was a calibration record, the model is therefore the
    same, the two calibration parts are neighbours, and the privacy loss is that of the release.

    A record calibrates if its number in [0, 1) is below the share. Without a seed the numbers are fresh, independent of
    the records and of each other, so those of the common records have the same law in D and D'. With a seed a record's
    number is a keyed hash of its content and of the number of equal records before it: c equal records have the numbers
    1 to c of their content. If one of them is left out, c - 1 have the numbers 1 to c - 1, because equal records are
    indistinguishable. The numbers of other contents do not change. Contents are compared in double precision.

    Coverage. The numbers of different records and of equal ones are independent of the data and of each other (with a
    seed: as far as a keyed hash is like a random function), so calibration records and new ones stay exchangeable.
    Under `replace_one` without a seed the same holds for a record that is replaced, which keeps its number. With a seed
    the new content may fall into the other part; the guarantee is then about records of the calibration part among
    themselves.
    """
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) < 1:
        must = "must be a share between 0 and 1: records are drawn independently, so their number cannot be fixed"
        raise InputError("calibration_size", must, got=repr(share))
    numbers = uniforms(n) if seed is None else _hash_numbers(check_random_state(seed).bytes(32), n, columns)
    return numbers < float(share)


def _hash_numbers(key: bytes, n: int, columns: tuple[Any, ...]) -> NDArray[np.float64]:
    """Numbers in [0, 1), shape (n,): the keyed hash of a record's content and of its position among equal records."""
    counts = Counter[bytes]()
    numbers = np.empty(n)
    contents = [_contents(column) for column in columns]
    for i in range(n):
        # The content; lengths separate the columns.
        state = blake2b(key=key, digest_size=32)
        for content in contents:
            piece = next(content)
            state.update(len(piece).to_bytes(8, "big") + piece)

        # Its position among equal records.
        content_hash = state.digest()
        counts[content_hash] += 1
        number = blake2b(content_hash + counts[content_hash].to_bytes(8, "big"), key=key, digest_size=8).digest()
        numbers[i] = (int.from_bytes(number, "big") >> 11) * 2.0**-53  # 53 bits, as many as a float has
    return numbers


def _contents(column: Any) -> Iterator[bytes]:
    """The content of each record, as bytes that depend only on that record."""
    # A sparse matrix: the same entries have the same bytes.
    if hasattr(column, "tocsr"):
        rows = column.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False):
            yield rows.indices[start:stop].astype(np.int64).tobytes() + rows.data[start:stop].astype(float).tobytes()
        return

    # An array of numbers, in which each record is encoded as below.
    if not isinstance(column, list | tuple):
        column = np.asarray(column)
        if column.dtype.kind in "biuf":
            for row in np.ascontiguousarray(column, dtype=np.float64).reshape(len(column), -1):
                yield (row + 0.0).tobytes()  # -0.0 is 0.0
            return
        column = column.tolist()
    yield from map(_content, column)


def _content(record: Any) -> bytes:
    """The bytes of one record: its numbers in double precision if it has nothing else, or else its text.

    They do not depend on the type of the whole column, which a missing value of another record may change.
    """
    values = list(_values(record))
    if all(isinstance(value, Real) for value in values):
        return bytes((np.array(values, dtype=np.float64) + 0.0).tobytes())
    return repr(values).encode()


def _values(record: Any) -> Iterator[Any]:
    """The values of a record: numbers as float and texts as str, which versions of numpy print differently."""
    match record:
        case list() | tuple() | np.ndarray():
            for item in record:
                yield from _values(item)
        case Real():
            yield float(record)
        case str():
            yield str(record)
        case _:
            yield record


# Rows, targets and weights of the records.


def checked_target(X: Any, y: ArrayLike, estimator: str) -> NDArray[Any]:
    """One target for each record, none of them missing; `estimator` is the name of its class."""
    if y is None:
        raise ValueError(f"requires y to be passed, but the target y is None; {estimator} needs labels")
    _refuse_missing(y)
    _refuse_mixed_labels(y)
    target: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(X, target)
    refuse_other_rows(X=X, y=y)
    assert_all_finite(target, input_name="y", estimator_name=estimator)
    return target


def _refuse_missing(y: ArrayLike) -> None:
    """Raise an error for missing targets: how many, and the first position. Also for complex numbers."""
    array = as_array("y", y).ravel()
    if array.dtype.kind == "c":  # scikit-learn's error would show them
        raise InputTypeError("y", "must hold real numbers, or labels", got=f"dtype {array.dtype}")
    if array.dtype.kind in "OfMm":
        missing = [is_missing(value) for value in array.tolist()] if array.dtype.kind == "O" else array != array
        remedy = "Add them; coverage of the other records alone says nothing about records without one"
        raise_for_rows("y", missing, "must not be missing", "missing", remedy)


def _refuse_mixed_labels(y: Any) -> None:
    """Reject labels of which some are texts: numpy would make texts of the others."""
    texts = sum(isinstance(label, str) for label in y) if isinstance(y, list | tuple) else 0
    if texts and texts < len(y):
        got = f"{texts} str among {len(y)} labels, so that the others would become str"
        raise InputTypeError("y", "must all be str, or none", got=got)


def checked_weights(fit_params: dict[str, Any], n: int) -> dict[str, Any]:
    """The same arguments with weights of shape (n,); weights of another length, or missing ones, raise an error."""
    checked = dict(fit_params)
    for name, weights in fit_params.items():
        if name.rpartition("__")[2] == "sample_weight" and weights is not None:
            checked[name] = as_vector(name, weights, empty=True)
            if len(checked[name]) != n:
                raise InputError(name, "must have one entry per record", got=f"{len(checked[name])} for {n} records")
            raise_for_rows(name, ~np.isfinite(checked[name]), "must be finite", "NaN or infinite")
    return checked


def has_entry_per_record(value: Any, n: int) -> bool:
    """Whether a value has one entry for each of n records."""
    if isinstance(value, str | Mapping):
        return False
    shape = getattr(value, "shape", None)
    return bool(shape[0] == n) if shape else hasattr(value, "__len__") and len(value) == n


def of_rows(arguments: Mapping[str, Any], n: int, index: NDArray[np.int64]) -> dict[str, Any]:
    """Arguments for training on some rows: of those with one entry for each of n records, only these rows."""
    return {
        name: rows_of(value, index) if has_entry_per_record(value, n) else value for name, value in arguments.items()
    }


def rows_of(X: Any, index: NDArray[np.int64]) -> Any:
    """Some rows of a data frame, a sparse matrix, an array or a list."""
    rows = _safe_indexing(*indexable(X), index)
    if getattr(getattr(rows, "dtype", None), "kind", "") not in ("U", "S"):
        return rows
    # Strings in a dtype as wide as the longest of these rows, because other rows may contain longer ones.
    return rows.astype(f"{rows.dtype.kind}{max(map(len, rows.ravel().tolist()), default=1) or 1}")
