"""A model's fingerprint: random sums of its outputs on public probe records, or the SHA-256 of its file.

A threshold belongs to the model whose scores calibrated it, and a retrained model has other scores. A release that
states a fingerprint can be compared with the model that is used (`Release.for_model`).

The outputs x, N numbers, are stored as 32 sums s_j = (r_j1 x_1 + ... + r_jN x_N)/sqrt(N) with fixed signs r = +1 or -1.
For the outputs y of another model the mean of (s_j(x) - s_j(y))^2 estimates the mean of (x_i - y_i)^2, whatever they
are (Achlioptas 2003, random projections). A hash would differ after the last bit of one output has changed, which
happens between processors. The sums depend on every output, so a model that differs on few records is found too.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric
from confide.errors import InputError, InputTypeError
from confide.support import FileLocation, as_place, positive_number, shapes

SUMS = 32
"""The estimated difference is within a factor of 2 of the true one, except with probability 1e-5 (chi-square law)."""

TOLERANCE = 0.001
"""The default tolerance: far above single precision, far below a retrained model."""

_LEAST, _MOST = 8, 2**22
_CONSTANT, _LARGEST = 1e-9, 1e100


@dataclass(frozen=True)
class ModelFingerprint:
    """What a release states about its model; make it with `of` or `of_file`. It must depend on public data alone.

    Parameters
    ----------
    sums
        32 sums of the outputs with fixed signs; empty for a file.
    shape
        The shape of the outputs.
    spread
        The standard deviation of the outputs.
    tolerance
        The largest root mean square difference of outputs of the same model, relative to `spread`: above 0, up to 0.1.
    sha256
        The SHA-256 of the model's file; None for outputs.

    Raises
    ------
    InputError, InputTypeError
        If a field is invalid.

    Examples
    --------
    >>> outputs = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    >>> print(ModelFingerprint.of(outputs))
    outputs of shape 50 x 3, tolerance 0.001
    """

    sums: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()
    spread: float = 0.0
    tolerance: float = TOLERANCE
    sha256: str | None = None

    def __post_init__(self) -> None:
        if self.sha256 is not None:
            digits = isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256)
            if not digits or self.sums or self.shape or self.spread:
                raise InputError("sha256", "must be 64 hexadecimal digits, without outputs")
            return
        if len(self.sums) != SUMS or not all(map(math.isfinite, self.sums)):
            raise InputError("sums", f"must be {SUMS} finite numbers", remedy="Use ModelFingerprint.of(outputs)")
        if not _LEAST <= math.prod(self.shape) <= _MOST:
            raise InputError("shape", f"must be that of {_LEAST} to {_MOST} outputs")
        positive_number("spread", self.spread)
        if positive_number("tolerance", self.tolerance) > 0.1:
            raise InputError(
                "tolerance", "must be at most 0.1, a share of the outputs' spread", got=f"{self.tolerance:g}"
            )

    @classmethod
    def of(cls, outputs: ArrayLike, tolerance: float = TOLERANCE) -> "ModelFingerprint":
        """The fingerprint of a model by its outputs for PUBLIC probe records.

        Parameters
        ----------
        outputs
            Probabilities, predictions or other numbers that the model returns, of any shape, 8 to 4,194,304 finite
            numbers that are not all equal. Their order matters. The probe records **must be public** and not from the
            calibration records, because no noise protects them.
        tolerance
            The largest difference of the same model's outputs on other machines, as a share of their standard
            deviation.

        Raises
        ------
        InputError, InputTypeError
            If the outputs or the tolerance cannot be used.

        Examples
        --------
        >>> outputs = np.linspace(0, 1, 20)
        >>> fingerprint = ModelFingerprint.of(outputs)
        >>> fingerprint.difference(ModelFingerprint.of(outputs.astype("float32"))) is None
        True
        >>> fingerprint.difference(ModelFingerprint.of(outputs**2))
        'outputs that differ by about ... % of their spread, tolerance 0.1 %'
        """
        x = as_numeric("outputs", outputs).astype(np.float64)
        if not _LEAST <= x.size <= _MOST:
            remedy = "Take other public probe records; a few dozen to a few thousand are enough"
            raise InputError("outputs", f"must be {_LEAST} to {_MOST:,} numbers", got=f"{x.size:,}", remedy=remedy)
        if wrong := int(np.count_nonzero(~(np.abs(x) <= _LARGEST))):
            raise InputError("outputs", f"must be finite, up to {_LARGEST:g}", got=f"{wrong:,} that are not")
        largest = float(np.abs(x).max())
        spread = float(np.std(x / largest)) * largest if largest else 0.0
        if not spread > _CONSTANT * largest:
            raise InputError("outputs", "must not all be equal", remedy="Take probe records with different outputs")
        return cls(_sums(x.ravel()), x.shape, spread, positive_number("tolerance", tolerance))

    @classmethod
    def of_file(cls, path: str | FileLocation) -> "ModelFingerprint":
        """The fingerprint of a model by its file, such as ONNX or a checkpoint; any other byte is another model.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        try:
            with as_place(path).open("rb") as file:
                return cls(sha256=hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            raise InputError("fingerprint", f"{str(path)!r} cannot be read: {error.strerror}") from None

    @property
    def kind(self) -> str:
        """`"outputs"` or `"file"`."""
        return "file" if self.sha256 is not None else "outputs"

    def difference(self, other: "ModelFingerprint") -> str | None:
        """What distinguishes another model from this one, in words; None if it is the same within the tolerance."""
        if self.kind != other.kind or self.shape != other.shape:
            return f"{other}, instead of {self}"
        if self.sha256 is not None:
            return None if self.sha256 == other.sha256 else f"{other}, instead of {self}"
        apart = math.dist(self.sums, other.sums) / math.sqrt(SUMS) / self.spread
        if apart <= self.tolerance:
            return None
        return f"outputs that differ by about {100 * apart:.2g} % of their spread, tolerance {100 * self.tolerance:g} %"

    def __str__(self) -> str:
        if self.sha256 is not None:
            return f"a file with SHA-256 {self.sha256[:12]}..."
        return f"outputs of shape {' x '.join(map(str, self.shape))}, tolerance {self.tolerance:g}"


def _sums(x: NDArray[np.float64]) -> tuple[float, ...]:
    """The sums of N numbers, shape (N,), each divided by sqrt(N)."""
    return tuple(float(_signs(j, x.size) @ (x / math.sqrt(x.size))) for j in range(SUMS))


def _signs(j: int, n: int) -> NDArray[np.float64]:
    """The signs of a sum, the bits of SHAKE-256, the same on every machine: float64, shape (n,)."""
    stream = hashlib.shake_256(f"confide model fingerprint {j}".encode()).digest(-(-n // 8))
    return np.unpackbits(np.frombuffer(stream, np.uint8))[:n] * np.float64(2) - 1


def check_fingerprint(fingerprint: Any) -> ModelFingerprint | None:
    """Validate the argument `fingerprint`; raw outputs raise an error, so that public and private ones differ in type.

    Raises
    ------
    InputTypeError
        If it is neither a fingerprint nor None.
    """
    if fingerprint is None or isinstance(fingerprint, ModelFingerprint):
        return fingerprint
    remedy = "Use ModelFingerprint.of(outputs) for outputs on PUBLIC probe records, or ModelFingerprint.of_file(path)"
    raise InputTypeError("fingerprint", "must be a ModelFingerprint", got=type(fingerprint).__name__, remedy=remedy)


_OUTPUTS: shapes.Shape = {
    "kind": shapes.choice("outputs"),
    "sums": shapes.listed(shapes.number()),
    "shape": shapes.listed(shapes.integer(_MOST)),
    "spread": shapes.number(0),
    "tolerance": shapes.number(0),
}
_FILE: shapes.Shape = {"kind": shapes.choice("file"), "sha256": shapes.hexadecimal()}


def _shape(content: Any) -> shapes.Shape:
    return _FILE if content.get("kind") == "file" else _OUTPUTS


def _read(values: dict[str, Any]) -> ModelFingerprint:
    return ModelFingerprint(**{name: value for name, value in values.items() if name != "kind"})


FINGERPRINT = shapes.Field(
    "the fingerprint of a model, or be left out",
    (dict,),
    _read,
    lambda value: shapes.write_shape(value, _shape({"kind": value.kind})),
    optional=True,
    shape=_shape,
)
"""The fingerprint in a file; absent if there is none."""
