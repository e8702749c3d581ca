"""The protocol of mechanisms, the coverage guarantee of any of them, and the baseline without privacy.

A release stores the fields of its mechanism and nothing else about it. Privacy and coverage follow from these public
numbers, so that every reader can compute them again.
"""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import Guarantee, GuaranteeKind, RankLaw
from confide.support import Facts, float_below

MechanismName: TypeAlias = Literal["slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "none"]

MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)

# Utilities and noisy counts up to this fit into 64 bits, and so does the difference of two of them.
INT64_ROOM = 2**62


def saturated(utilities: NDArray[Any]) -> NDArray[np.int64]:
    """Utilities as int64; Python's integers, which might exceed 64 bits, relative to the largest, saturated at -2^62.

    This has no privacy cost. Relative to their largest utilities, neighbours differ by amounts in an interval around 0
    as long as the range distance, and saturation moves every difference towards 0.
    """
    if utilities.dtype == object:
        utilities = np.maximum(utilities - utilities.max(), -INT64_ROOM)
    return utilities.astype(np.int64, copy=False)


class Mechanism(Protocol):
    """A frozen dataclass that states a mechanism completely, in public numbers. It makes no other claims."""

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    def name(self) -> MechanismName | Literal["published-counts"]:
        """The name that `calibrate` accepts for it, or that of `calibrate_counts`."""

    @property
    def add_remove(self) -> float | None:
        """Proven loss when one record is added or removed; None if the number of records is public."""
        return None

    @property
    def replace_one(self) -> float:
        """Proven loss when one record is replaced."""

    @property
    def claimed(self) -> float | None:
        """The loss that the published analysis states, if it differs from the proven one; else None."""
        return None

    @property
    def range_factor(self) -> int:
        """The length of an interval of all log-ratios of two neighbouring laws, in units of the loss: 1 or 2."""
        return 2

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate: the only step that uses private counts."""

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction | None:
        """Guaranteed marginal coverage over m candidates, for a public n or every n >= n_min; None if none."""
        return None

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed on average over noisy numbers of records, of which `counted` is one."""
        return False

    def covers_conditionally(self, level: Fraction, m: int, n: int | None, n_min: int | None, delta: float) -> bool:
        """Whether coverage given the calibration data is at least `level` with probability 1 - delta."""
        return False

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """A law, independent of the data, of a rank R with threshold >= R-th smallest score; None if unknown."""
        return None

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin; 1 if none is claimed."""
        return 1.0

    def stated(self) -> dict[str, Any]:
        """Its name and its fields, with fractions as str; without a law of noise, which a request states."""
        content: dict[str, Any] = {"name": self.name}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name != "noise":
                content[field.name] = str(value) if isinstance(value, Fraction) else value
        return content

    def facts(self, m: int) -> Facts:
        """The mechanism and its parameters in words, for m candidates."""
        parameters = {name: str(value) for name, value in self.stated().items()}
        return (("mechanism", parameters.pop("name")), *parameters.items())

    def theorem(self, guarantee: Guarantee) -> str:
        """The page of the documentation that proves such a guarantee, and its theorem."""
        return "docs/methods.md"


def mechanism_facts(mechanism: Mechanism | None, m: int) -> Facts:
    """`Mechanism.facts`; None stands for +inf without reading the data."""
    if mechanism is None:
        return (("mechanism", "none: +inf was returned without reading the data"),)
    return mechanism.facts(m)


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def certify(
    mechanism: Mechanism | None, alpha: Fraction, m: int, n: int | None, n_min: int | None, delta: float | None
) -> Guarantee:
    """The guarantee of a mechanism over m candidates, for a public n or a secret one (docs/theory.md, Theorems C2, C3).

    Without a mechanism the answer is +inf, which covers all records. A training-conditional guarantee that does not
    hold has coverage 0. A mechanism without a certificate has a guarantee of kind `"none"`.
    """
    level = 1 - alpha
    if mechanism is None:
        coverage: Fraction | None = Fraction(1)
    elif delta is None:
        coverage = mechanism.certified(level, m, n, n_min)
    else:
        coverage = level if mechanism.covers_conditionally(level, m, n, n_min, delta) else Fraction(0)
    if coverage is None:
        return Guarantee("none", 0.0, None, n, n_min)
    kind: GuaranteeKind = "marginal" if delta is None else "training_conditional"
    rounded_down = float(level) if coverage == level else float_below(coverage)
    return Guarantee(kind, rounded_down, delta, n, n_min)


@dataclass(frozen=True)
class SplitConformal(Mechanism):
    """`none`: the first candidate that is at least the k-th smallest score, k = ceil((n+1)(1-alpha)). **Not private**.

    Split conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005;
    Papadopoulos et al., ECML 2002; Lei et al., JASA 2018). Marginal coverage is at least k/(n+1), and for continuous
    scores above it by at most the mass of one bin.
    """

    name: ClassVar[Literal["none"]] = "none"
    add_remove: ClassVar[float] = math.inf
    replace_one: ClassVar[float] = math.inf

    rank: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The first candidate with at least k scores at or below it."""
        return int(np.searchsorted(np.cumsum(counts), self.rank))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """k/(n+1), exactly."""
        assert n is not None
        return Fraction(min(self.rank, n + 1), n + 1)

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The rank k, with probability 1."""
        return np.array([self.rank], dtype=np.int64), np.array([1.0]), 0.0

    def coverage_at_most(self, n: int, m: int) -> float:
        """k/(n+1)."""
        return min(1.0, self.rank / (n + 1))


def split_conformal_for(level: Fraction, n: int) -> SplitConformal | None:
    """The rank ceil((n+1) level); None if it exceeds n, where the threshold is +inf."""
    rank = math.ceil(level * (n + 1))
    return SplitConformal(rank) if rank <= n else None
