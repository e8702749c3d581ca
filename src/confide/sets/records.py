"""What sets and intervals of records share: their origin, the selection of records, and the promise in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Release
from confide.errors import InputTypeError
from confide.support import Described, require

MOST_SHOWN = 10
"""Number of records that are shown to people."""


class Records(Described):
    """Sets or intervals of records, with the release and the index that they were made from."""

    index: Any
    calibration: Release | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "calibration": None}

    def _origin_of(self, which: Any, positions: slice | NDArray[Any]) -> dict[str, Any]:
        """The release, for which only a slice of its records is a fair sample, and the index of a selection."""
        return {
            "calibration": self.calibration if isinstance(which, slice) else None,
            "index": None if self.index is None else self.index[positions],
        }


def positions_of(argument: str, requirement: str, which: Any) -> slice | NDArray[Any]:
    """A selection of records: a slice, one position, or a vector of positions or booleans."""
    if isinstance(which, slice):
        return which
    positions = np.asarray(which)
    require(argument, positions.ndim <= 1, requirement, got=f"{positions.ndim} dimensions")
    kinds = "iub" if positions.ndim else "iu"  # one boolean is no position
    if positions.size and positions.dtype.kind not in kinds:
        raise InputTypeError(argument, requirement, got=f"{type(which).__name__} of dtype {positions.dtype}")
    return positions if positions.size else positions.astype(np.int64)  # an empty list has the dtype float64


def promise_notes(promised: float | None) -> tuple[str, ...]:
    """The guarantee of sets or intervals in words, if it is known."""
    return () if promised is None else (f"promised: coverage at least {promised:.4g} on average",)
