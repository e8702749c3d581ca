"""A model's fingerprint, by which a release is compared with the model that is used (`Release.for_model`)."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_numeric
from confide.errors import InputError, InputTypeError
from confide.support import FileLocation, as_place, require

# The default number of decimals: far above single precision, far below a retrained model.
DECIMALS = 3

_MOST_DECIMALS = 15


@dataclass(frozen=True)
class ModelFingerprint:
    """What a release states about its model; make it with `of` or `of_file`. It must depend on public data alone.

    Parameters
    ----------
    sha256
        The SHA-256 of the shape and the rounded outputs, or of the model's file: 64 hexadecimal digits.
    decimals
        The number of decimals to which outputs were rounded, from -15 to 15; None for a file.

    Raises
    ------
    InputError, InputTypeError
        If a field is invalid.

    Examples
    --------
    >>> outputs = np.linspace(0, 1, 20)
    >>> fingerprint = ModelFingerprint.of(outputs)
    >>> fingerprint == ModelFingerprint.of(outputs + 1e-9), fingerprint == ModelFingerprint.of(outputs**2)
    (True, False)
    """

    sha256: str
    decimals: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sha256, str) or not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise InputError("sha256", "must be 64 hexadecimal digits")
        if self.decimals is not None:
            _check_decimals(self.decimals)

    @classmethod
    def of(cls, outputs: ArrayLike, decimals: int = DECIMALS) -> "ModelFingerprint":
        """The fingerprint of a model by its outputs for PUBLIC probe records.

        Parameters
        ----------
        outputs
            Probabilities, predictions or other finite numbers that the model returns, of any shape. Their order
            matters. The probe records **must be public** and not from the calibration records, because no noise
            protects them.
        decimals
            The number of decimals to which outputs are rounded first, so that small differences between machines do
            not matter; negative numbers round to tens, hundreds and so on. An output near a boundary may still be
            rounded differently: take fewer decimals, or other probe records.

        Raises
        ------
        InputError, InputTypeError
            If the outputs or the decimals cannot be used.

        Examples
        --------
        >>> print(ModelFingerprint.of(np.linspace(0, 1, 20)))
        outputs rounded to 3 decimals, SHA-256 89ba1fc77992...
        """
        x = as_numeric("outputs", outputs).astype(np.float64)
        _check_decimals(decimals)
        require("outputs", x.size, "must not be empty")
        if wrong := int(np.count_nonzero(~np.isfinite(x))):
            raise InputError("outputs", "must be finite", got=f"{wrong:,} that are not")
        rounded = np.round(x, decimals) + 0.0  # -0 counts as 0
        text = f"{x.shape} {decimals}".encode()
        return cls(hashlib.sha256(text + rounded.astype("<f8").tobytes()).hexdigest(), decimals)

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
                return cls(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            raise InputError("fingerprint", f"{str(path)!r} cannot be read: {error.strerror}") from None

    def __str__(self) -> str:
        of = "a file with" if self.decimals is None else f"outputs rounded to {self.decimals} decimals,"
        return f"{of} SHA-256 {self.sha256[:12]}..."


def _check_decimals(decimals: Any) -> None:
    if isinstance(decimals, bool) or not isinstance(decimals, int):
        raise InputTypeError("decimals", "must be an integer", got=type(decimals).__name__)
    if abs(decimals) > _MOST_DECIMALS:
        raise InputError("decimals", f"must be from -{_MOST_DECIMALS} to {_MOST_DECIMALS}", got=str(decimals))


def check_fingerprint(fingerprint: Any) -> ModelFingerprint | None:
    """Validate the argument `fingerprint`; raw outputs raise an error: public and private ones differ in type."""
    if fingerprint is None or isinstance(fingerprint, ModelFingerprint):
        return fingerprint
    remedy = "Use ModelFingerprint.of(outputs) for outputs on PUBLIC probe records, or ModelFingerprint.of_file(path)"
    raise InputTypeError("fingerprint", "must be a ModelFingerprint", got=type(fingerprint).__name__, remedy=remedy)
