"""What the name of a score stands for: a registered score and its parameters."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.arrays import as_float_rows, tempered
from confide.candidates import AnyCandidates, Candidates, Spread, SpreadKind, spread_of
from confide.errors import InputError, InputTypeError
from confide.scores.library import LibraryScore
from confide.scores.ranked import RankRule
from confide.scores.score import LARGEST, Score
from confide.support import MOST_CANDIDATES, positive_integer, require

Task = Literal["classification", "regression", "any"]

# The number of candidates for counts that are made before a request is known.
_ANY_REQUEST = 1000


@dataclass(frozen=True)
class ScoreKind:
    """What the name of a score stands for: a registered score and its parameters.

    Without a registered score it is a score of the user's own program, of which at most the name is known. A randomised
    score uses a random number per record; its deterministic variant sets it to 1.
    """

    name: str | None
    score: Score | None = None
    randomised: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    unregistered_spread: Spread = field(default_factory=lambda: Spread("any"))

    @property
    def task(self) -> Task:
        """What its thresholds make: sets, intervals, or neither in this process."""
        return "any" if self.score is None else self.score.task

    @property
    def low(self) -> float:
        """The smallest value."""
        return -LARGEST if self.score is None else self.score.low

    @property
    def high(self) -> float:
        """The largest value."""
        return math.inf if self.score is None else self.score.high

    @property
    def family(self) -> str | None:
        """The name without `_deterministic` and without parameters; None if no score is registered."""
        return None if self.score is None else self.score.name

    @property
    def positive(self) -> bool:
        """Whether predictions must be positive."""
        return self.score is not None and self.score.positive

    @property
    def _library(self) -> LibraryScore | None:
        return self.score if isinstance(self.score, LibraryScore) else None

    @property
    def temperature(self) -> float | None:
        """The public temperature applied to probabilities; None if they are used unchanged."""
        return self.parameters.get("temperature")

    @property
    def of_one_entry(self) -> bool:
        """Whether it is one minus a probability, so that the other classes are not needed."""
        return self._library is not None and self._library.of_one_entry and self.temperature is None

    @property
    def rule(self) -> RankRule | None:
        """The rule of a score that follows the order of the probabilities; None for others."""
        library = self._library
        return None if library is None or library.rule is None else library.rule(**self._numbers)

    @property
    def _score(self) -> Score:
        if self.score is None:
            raise unregistered(self.name)
        return self.score

    @property
    def _numbers(self) -> dict[str, float]:
        return {name: value for name, value in self.parameters.items() if name != "temperature"}

    def rows(self, p: NDArray[Any]) -> NDArray[Any]:
        """Probabilities at its temperature, in contiguous rows of float32 or float64."""
        return as_float_rows(p) if self.temperature is None else tempered(p, self.temperature)

    def class_scores(self, p: NDArray[Any], u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of all classes, shape (n, K), for probabilities and numbers u, shape (n,)."""
        shares = {"u": u} if self._score.randomised else {}
        assert self._score.classes is not None
        scores = self._score.classes(self.rows(p).astype(np.float64), **shares, **self._numbers)
        return self._shaped(scores, p.shape)

    def own_scores(self, p: NDArray[Any], y: NDArray[np.int64], u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The entries of `class_scores` for the classes y, shape (n,)."""
        return self.class_scores(p, u)[np.arange(len(p)), y]

    def target_scores(
        self, predictions: NDArray[np.float64], targets: NDArray[np.float64], **difficulty: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The scores of targets, shape (n,)."""
        assert self._score.own is not None
        return self._shaped(self._score.own(predictions, targets, **difficulty, **self._numbers), targets.shape)

    def interval(
        self, predictions: NDArray[np.float64], thresholds: NDArray[np.float64], **difficulty: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of {y : score(x, y) <= threshold}, shape (n,) each; thresholds are rounded up to the next float."""
        assert self._score.interval is not None
        lower, upper = self._score.interval(predictions, thresholds, **difficulty, **self._numbers)
        return self._shaped(lower, thresholds.shape), self._shaped(upper, thresholds.shape)

    def onnx(self, graph: Any, *tensors: str) -> Any:
        """Append the ONNX form of `class_scores` or `interval` to a graph; returns the names of its results."""
        assert self._score.onnx is not None
        return self._score.onnx(graph, *tensors, **self._numbers)

    def _shaped(self, numbers: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        if np.shape(numbers) != shape:
            raise InputError("score", f"{self.name!r} must return shape {shape}", got=f"shape {np.shape(numbers)}")
        return np.asarray(numbers, dtype=np.float64)

    def sentence(self, threshold: float, number: Callable[[float], str]) -> str:
        """The sentence about a set or an interval, with numbers as text."""
        stated = "A label is in the set if its nonconformity score is at most {threshold}."
        if self.score is not None:
            stated = self.score.sentence if isinstance(self.score.sentence, str) else self.score.sentence(threshold)
        return stated.format(
            threshold=number(threshold),
            complement=number(1 - threshold),
            opposite=number(-threshold),
            share=", of the last one a random part," if self.randomised else "",
        )

    def plausible_size(self, recipe: Mapping[str, Any]) -> float:
        """The largest size of a threshold that does not cause a warning, for these candidates."""
        if self.score is not None and self.score.plausible is not None:
            return self.score.plausible
        return spread_of(recipe).plausible if recipe.get("kind") == "spread" else math.inf

    def largest(self, classes: int | None = None) -> float:
        """The largest value, up to rounding: a threshold of at least this much excludes nothing; +inf if it is unknown.

        Examples
        --------
        >>> from confide.scores import score_kind
        >>> score_kind("lac").largest(), score_kind("top_k").largest(8), score_kind("cqr").largest()
        (1.0, 8.0, inf)
        >>> score_kind("raps(penalty=0.01,k_reg=5)").largest(8), score_kind("top_k").largest()
        (1.03, inf)
        """
        if self._library is not None and self._library.bound is not None:
            return self._library.bound(classes, **self._numbers)
        return self.high if self.high < LARGEST else math.inf

    @property
    def _spread(self) -> Spread:
        stated = None if self.score is None else self.score.spread
        return stated if isinstance(stated, Spread) else self.unregistered_spread

    @property
    def _own_list(self) -> Candidates | None:
        """The candidates of a score that states a list, not a spread."""
        stated = None if self.score is None else self.score.spread
        return stated if isinstance(stated, Candidates) else None

    @property
    def spread_kind(self) -> SpreadKind:
        """How candidates are spread."""
        return self._spread.kind or "any"

    def candidates(self) -> Candidates:
        """Candidates for any request, so that counts can be made before a request is known."""
        if self._own_list is not None:
            return self._own_list
        if self.spread_kind == "probability":
            return Candidates.unit(_ANY_REQUEST, "logit")
        return Candidates.quantiles(self._spread, _ANY_REQUEST)

    def spread(self, unit: float | None = None) -> Spread:
        """The spread of suitable candidates, of which a plan takes as many as it needs."""
        if unit is None:
            return self._spread
        if self.task == "classification":
            raise InputError("unit", f"must be left out for the score {self.name!r}, which has a fixed scale")
        return Spread("signed", unit) if self.score is None else replace(self._spread, unit=unit)

    def choose_candidates(self, candidates: AnyCandidates, unit: float | None = None) -> Candidates | Spread:
        """The meaning of `candidates=` and `unit=` for this score: a list unchanged, or a spread.

        A number of candidates, +inf included, is equally spaced for scores from 0 to 1, and spread in the default way
        for other scores, approximately.
        """
        if isinstance(candidates, Candidates):
            remedy = "Use a Spread, which has a unit"
            require("unit", unit is None, "must be left out with explicit candidates", remedy=remedy)
            return candidates
        if isinstance(candidates, Spread):
            require("unit", unit is None, "must be left out with a Spread, which has a unit")
            return candidates if candidates.kind is not None else replace(candidates, kind=self.spread_kind)
        if candidates is None:
            return self._own_list if self._own_list is not None and unit is None else self.spread(unit)
        if isinstance(candidates, bool) or not isinstance(candidates, Integral):
            must = "must be a confide.Candidates, a Spread, their number or None"
            remedy = "Wrap values in Candidates.of"
            raise InputTypeError("candidates", must, got=type(candidates).__name__, remedy=remedy)
        return self._so_many(positive_integer("candidates", candidates, most=MOST_CANDIDATES), unit)

    def _so_many(self, number: int, unit: float | None) -> Candidates:
        spread = self.spread(unit)
        if (self.low, self.high) == (0.0, 1.0) or number == 1:
            return Candidates.unit(number)
        return Candidates.quantiles(spread, min(number, MOST_CANDIDATES - 3))

    @property
    def takes_infinity(self) -> bool:
        """Whether +inf is a score: that of a record whose label is not among the classes, which no set covers."""
        return self.task == "classification" or math.isinf(self.high)

    @property
    def range_text(self) -> str:
        """The range in words, for messages."""
        return f"{self._finite_range}, or +inf" if self.task == "classification" else self._finite_range

    @property
    def _finite_range(self) -> str:
        if math.isinf(self.low) or self.low == -LARGEST:
            return "above -inf" if math.isinf(self.high) else "other than +-inf"
        if self.high == LARGEST:
            return f"of at least {self.low:g} and finite"
        return f"between {self.low:g} and {self.high:g}"


def unregistered(name: str | None) -> InputError:
    """The error for a computation of a score that is not registered in this process."""
    remedy = "Register it with confide.register_score, or install the package that does"
    return InputError("score", "must be registered, or one of the library's own", got=repr(name), remedy=remedy)
