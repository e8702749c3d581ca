"""Draws that tests put in the place of the secure ones, by the fixture `draw_with` or in a block of `drawing_with`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.selection.draws import _SECURE as SECURE
from confide.selection.draws import _drawing_with as drawing_with

__all__ = ["SECURE", "always", "drawing_with", "exact_number", "last", "likeliest", "recording", "without_noise"]


def always(value: Any) -> Callable[..., Any]:
    """Draw this value: a candidate, counts or a number of records."""
    return lambda data, *scale: value


def likeliest(utilities: NDArray[np.int64], scale: float) -> int:
    return int(utilities.argmax())


def last(utilities: NDArray[np.int64], scale: float) -> int:
    """The last candidate, +inf."""
    return len(utilities) - 1


def without_noise(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    return counts


def exact_number(n: int, scale: float) -> int:
    return n


def recording(records: list[tuple[Any, float]], draw: Callable[..., Any]) -> Callable[..., Any]:
    """Draw in this way, and append what is drawn from, as lists and numbers, and the scale."""

    def recorded(data: Any, scale: float) -> Any:
        records.append((data.tolist() if isinstance(data, np.ndarray) else data, scale))
        return draw(data, scale)

    return recorded
