"""The population of a guarantee, if it differs from that of the calibration records by a known shift.

Its density ratio to that population is public up to a factor: one number per class, or a bounded number per record.
Mechanisms use sums of integer weights. Ratios that are not ratios of integers up to 2^20 are rounded, and the guarantee
holds for the rounded ones, which change the shares of the population by at most `Population.rounding`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.support import (
    MOST_WEIGHT,
    Name,
    canonical_name,
    check_names,
    fraction_of,
    positive_number,
    raise_for_rows,
    require,
)

# Weights of records are rounded to steps, of which the largest weight has about this many.
_STEPS = 2**16

# Weights are 0, or lie between these; fractions that are not simple are rounded to millionths.
_LEAST = Fraction(1, 10**4)
_MOST = Fraction(10**4)
_DENOMINATOR = 10**6

# The error that a sum of shares may have.
_SUM_TO_ONE = Fraction(1, 100)

# The classes that a printed shift lists.
_SHOWN = 8


@dataclass(frozen=True)
class ClassShift:
    """A change of class frequencies compared with the calibration records, and of nothing else (label shift).

    Parameters
    ----------
    classes
        All possible classes, public.
    ratios
        For each class, its new share divided by its share in the population of the calibration records, up to a common
        factor.
    source, target
        The shares from which the ratios are computed, if known: **public**, never counted from the private records.

    Examples
    --------
    >>> shift = ClassShift.of_shares(source={"ill": 0.2, "well": 0.8}, target={"ill": 0.5, "well": 0.5})
    >>> shift.steps  # the ratios 2.5 and 0.625 as whole numbers
    (4, 1)
    >>> print(shift)
    for new records with class shares ill=0.5, well=0.5, if they are ill=0.2, well=0.8 where the calibration records ...
    """

    classes: tuple[Name, ...]
    ratios: tuple[Fraction, ...]
    source: tuple[Fraction, ...] | None = None
    target: tuple[Fraction, ...] | None = None

    @classmethod
    def of_weights(cls, weights: Mapping[Any, Any]) -> "ClassShift":
        """From the new share of each class divided by its old share, up to a common factor.

        Raises
        ------
        InputError, InputTypeError
            If a weight is not 0 or a number from 0.0001 to 10000, or all are 0.
        """
        ratios = _by_class("class_weights", weights, _MOST, _LEAST)
        require("class_weights", any(ratios.values()), "must not all be 0: no class would be left")
        return cls(tuple(ratios), tuple(ratios.values()))

    @classmethod
    def of_shares(cls, source: Mapping[Any, Any], target: Mapping[Any, Any]) -> "ClassShift":
        """From the class shares in the population of the calibration records, and the new ones; both public.

        Raises
        ------
        InputError, InputTypeError
            If the classes differ, if shares are not numbers from 0 to 1 or do not sum to 1 within 0.01, or if a class
            is new: no weight replaces records that do not exist.
        """
        # The same classes in both, with shares that sum to about one.
        old, new = _by_class("source", source), _by_class("target", target)
        if set(old) != set(new):
            raise InputError("target", "must be of the same classes as the source shares, each once", got="others")
        for argument, shares in (("source", old), ("target", new)):
            total = sum(shares.values(), Fraction(0))
            if abs(total - 1) > _SUM_TO_ONE:
                raise InputError(argument, "must sum to 1", got=f"a sum of {float(total):.6g}")

        # No weight replaces records that do not exist.
        missing = [name for name in old if new[name] and not old[name]]
        if missing:
            must = "must give a share above 0 to every class whose target share is above 0"
            remedy = "Weights cannot replace missing records: collect some, or use thresholds per class"
            raise InputError("source", must, got=f"0 for {missing[0]!r}", remedy=remedy)
        ratios = tuple(new[name] / old[name] if new[name] else Fraction(0) for name in old)
        return cls(tuple(old), ratios, source=tuple(old.values()), target=tuple(new[name] for name in old))

    def __post_init__(self) -> None:
        if len(self.ratios) != len(self.classes) or not any(self.ratios):
            raise InputError("ratios", "must be one for each class, not all 0")

    @property
    def steps(self) -> tuple[int, ...]:
        """The weights of the classes as integers without a common divisor; rounded if they exceed 2^20."""
        # Exact integers.
        denominator = math.lcm(*(ratio.denominator for ratio in self.ratios))
        whole = [int(ratio * denominator) for ratio in self.ratios]
        divisor = math.gcd(*whole)
        if max(whole) // divisor <= MOST_WEIGHT:
            return tuple(weight // divisor for weight in whole)

        # Rounded ones, of which only classes of ratio 0 have the weight 0.
        scaled = [ratio / max(self.ratios) * MOST_WEIGHT for ratio in self.ratios]
        return tuple(max(1, math.floor(weight + Fraction(1, 2))) if weight else 0 for weight in scaled)

    @property
    def heaviest(self) -> int:
        """The largest integer weight."""
        return max(self.steps)

    @property
    def typical_share(self) -> float:
        """The mean weight divided by the largest, for the old shares if they are known, else for equal shares."""
        shares = self.source or (Fraction(1, len(self.classes)),) * len(self.classes)
        total = sum(share * step for share, step in zip(shares, self.steps, strict=True))
        return float(total / self.heaviest / sum(shares))

    @property
    def rounding(self) -> float:
        """The largest change of a share of the new population by rounding; 0 if nothing was rounded.

        If only ratios are known, equal old shares are assumed; the change is larger if classes with large weights are
        rarer.
        """
        largest = max(self.ratios)
        weights = zip(self.steps, self.ratios, strict=True)
        exact = all(step * largest == ratio * self.heaviest for step, ratio in weights)
        return 0.0 if exact else 1 / MOST_WEIGHT / self.typical_share

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        numbers = {"ratios": self.ratios}
        if self.source is not None and self.target is not None:
            numbers = {"source": self.source, "target": self.target}
        return {"classes": list(self.classes)} | {name: [*map(str, shares)] for name, shares in numbers.items()}

    def __str__(self) -> str:
        if self.source is None or self.target is None:
            return (
                f"for new records of which the classes are {_by_name(self.classes, self.ratios)} times as frequent, up "
                "to a common factor, as where the calibration records come from"
            )
        return (
            f"for new records with class shares {_by_name(self.classes, self.target)}, if they are "
            f"{_by_name(self.classes, self.source)} where the calibration records come from"
        )


@dataclass(frozen=True)
class RecordWeights:
    """A public weight of every record, from 0 to `bound`: a function of its covariates, never of its score or label.

    The weight is the density ratio of the new population to that of the calibration records, up to a factor. Weights
    are rounded to multiples of 1/`scale`, a power of two.

    Examples
    --------
    >>> weights = RecordWeights.bounded(4)
    >>> weights.scale, weights.heaviest, weights.whole(np.array([0.5, 4.0]))
    (16384, 65536, array([ 8192, 65536]))
    """

    bound: float

    @classmethod
    def bounded(cls, bound: Any) -> "RecordWeights":
        """With a public bound, which no weight may exceed."""
        number = positive_number("weight_bound", bound)
        require("weight_bound", _LEAST <= number <= _MOST, "must lie between 0.0001 and 10000", got=repr(number))
        return cls(number)

    @property
    def scale(self) -> int | float:
        """The number of weight steps in a weight of one: a power of two, so that products with it are exact."""
        exponent = math.ceil(math.log2(_STEPS / self.bound))
        return 2**exponent if exponent >= 0 else 2.0**exponent

    @property
    def heaviest(self) -> int:
        """The largest integer weight."""
        return math.floor(self.bound * self.scale + 0.5)

    @property
    def typical_share(self) -> float:
        """The mean weight divided by the largest, if weights are density ratios, whose mean is 1."""
        return min(1.0, 1.0 / self.bound)

    @property
    def rounding(self) -> float:
        """The largest change of a share of the new population by rounding, if weights have the mean 1."""
        return 0.5 / float(self.scale)

    def whole(self, weights: NDArray[Any]) -> NDArray[np.int64]:
        """Validate weights of shape (n,) and return them as integers; errors contain a count and a first position."""
        array = np.asarray(weights, dtype=np.float64)
        invalid = ~((array >= 0) & (array <= self.bound))
        raise_for_rows("weights", invalid, f"must lie in [0, {self.bound:g}], the public weight_bound", "that do not")
        return np.floor(array * self.scale + 0.5).astype(np.int64)

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return {"bound": self.bound}

    def __str__(self) -> str:
        return (
            f"for new records of the population that public weights, at most {self.bound:g} each, make of the one that "
            "the calibration records come from"
        )


# The population of a guarantee; None stands for that of the calibration records.
Population: TypeAlias = ClassShift | RecordWeights


def rounding_text(population: Population) -> str:
    """The effect of rounding on the guarantee, in words."""
    if not population.rounding:
        return "not rounded"
    if isinstance(population, RecordWeights):
        given = " if their mean is 1"
    else:
        given = "" if population.source else " if all classes are equally frequent among those that calibrate"
    return f"rounded, which moves coverage by at most {population.rounding:.1e}{given}"


def weighted_sum(counts: Mapping[Any, ScoreHistogram], population: ClassShift) -> ScoreHistogram:
    """Weighted counts of records, and their number, computed from the counts of each class."""
    named = {canonical_name(name): class_counts for name, class_counts in counts.items()}
    steps = dict(zip(map(canonical_name, population.classes), population.steps, strict=True))
    total = sum(class_counts.counts * steps[name] for name, class_counts in named.items())
    records = sum(class_counts.total for class_counts in named.values())
    return ScoreHistogram(next(iter(named.values())).candidates, np.asarray(total), records)


def shifted_population(class_weights: Any = None, weight_bound: Any = None) -> Population | None:
    """The population that a call's arguments describe; None if that of the calibration records."""
    if class_weights is not None and weight_bound is not None:
        raise InputError("class_weights", "must be left out with weights: give one number per class or per record")
    if class_weights is None:
        return None if weight_bound is None else RecordWeights.bounded(weight_bound)
    if isinstance(class_weights, ClassShift):
        return class_weights
    if not isinstance(class_weights, Mapping):
        must = "must be a mapping from class to weight, or a confide.ClassShift"
        raise InputTypeError("class_weights", must, got=type(class_weights).__name__)
    return ClassShift.of_weights(class_weights)


def read_population(content: Mapping[str, Any]) -> Population:
    """The population of its `fields`: a bound, or a ratio or shares for each class."""
    if "bound" in content:
        return RecordWeights.bounded(content["bound"])
    classes = check_names("classes", content["classes"])
    shares = {name: dict(zip(classes, each, strict=True)) for name, each in content.items() if name != "classes"}
    return ClassShift.of_weights(shares["ratios"]) if "ratios" in shares else ClassShift.of_shares(**shares)


def _by_class(
    argument: str, values: Any, most: Fraction = Fraction(1), least: Fraction = Fraction(0)
) -> dict[Name, Fraction]:
    """The numbers by class, each 0 or from `least` to `most`."""
    if not isinstance(values, Mapping):
        raise InputTypeError(argument, "must be a mapping from class to number", got=type(values).__name__)
    named = zip(check_names(argument, list(values)), values.values(), strict=True)
    return {name: _number(f"{argument}[{name!r}]", value, most, least) for name, value in named}


def _number(name: str, value: Any, most: Fraction, least: Fraction) -> Fraction:
    """Return 0, or a number from `least` to `most`, as a fraction: the simplest within 1e-12, or in millionths."""
    if isinstance(value, bool) or not isinstance(value, Real | str | Fraction):
        raise InputTypeError(name, "must be a number", got=type(value).__name__)
    try:
        exact = fraction_of(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(name, "must be a finite number", got=repr(value)) from None
    if exact and not least <= exact <= most:
        raise InputError(name, f"must be 0 or lie between {float(least):g} and {float(most):g}", got=repr(value))
    simple = exact.limit_denominator(1000)
    return simple if abs(simple - exact) <= Fraction(1, 10**12) else exact.limit_denominator(_DENOMINATOR)


def _by_name(classes: Sequence[Name], values: Sequence[Fraction]) -> str:
    shown = [f"{name}={float(value):.6g}" for name, value in zip(classes, values, strict=True)]
    rest = len(shown) - _SHOWN
    return ", ".join(shown) if rest <= 0 else f"{', '.join(shown[:_SHOWN])} and {rest} more"
