"""What is known of a score by its name: its task, its range, and the candidates that suit it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError


@dataclass(frozen=True)
class ScoreKind:
    """A named conformity score.

    Parameters
    ----------
    name
        As recorded in a calibration.
    task
        What `predict_set` and `predict_interval` accept: `"classification"`, `"regression"` or `"any"`.
    low, high
        The closed range of its values.
    candidates
        Makes the default candidates.
    """

    name: str | None
    task: Literal["classification", "regression", "any"]
    low: float
    high: float
    candidates: Callable[[], Candidates]

    @property
    def range_text(self) -> str:
        """The range in words, for messages."""
        if math.isinf(self.low) or self.low == -_LARGEST:
            return "above -inf" if math.isinf(self.high) else "other than +-inf"
        if self.high == _LARGEST:
            return f"of at least {self.low:g} and finite"
        return f"between {self.low:g} and {self.high:g}"


_LARGEST = 1.7976931348623157e308

LAC = ScoreKind("lac", "classification", 0.0, 1.0, lambda: Candidates.unit(1000, "logit"))
ABSOLUTE_RESIDUAL = ScoreKind("absolute_residual", "regression", 0.0, _LARGEST, Candidates.geometric)
KINDS: dict[str, ScoreKind] = {kind.name: kind for kind in (LAC, ABSOLUTE_RESIDUAL) if kind.name}


def score_kind(name: str | None) -> ScoreKind:
    """The kind with this name; any other name, and None, stand for a user's own score with values in (-inf, +inf].

    Examples
    --------
    >>> score_kind("lac").high, score_kind("my score").task
    (1.0, 'any')
    """
    if name is not None and not isinstance(name, str):
        raise InputTypeError(f"score must be a name or None; found {type(name).__name__}")
    if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
        raise InputError("score must be a name of 1 to 200 printable characters")
    if name in KINDS:
        return KINDS[name]
    return ScoreKind(name, "any", -_LARGEST, math.inf, Candidates.anything)
