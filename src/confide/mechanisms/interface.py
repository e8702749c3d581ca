"""The interface of mechanisms, and the coverage guarantee of any of them.

A release stores the fields of its mechanism and nothing else about it. Privacy and coverage follow from these public
numbers, so that every reader can compute them again.
"""

from abc import ABC, abstractmethod
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import Guarantee, GuaranteeKind, RankLaw, RecordCount
from confide.selection import select
from confide.support import Facts, float_below

MechanismName: TypeAlias = Literal["slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "none"]

MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)


class Mechanism(ABC):
    """A frozen dataclass that states a mechanism completely, in public numbers. It makes no other claims."""

    @property
    @abstractmethod
    def name(self) -> MechanismName | Literal["published-counts"]:
        """The name that `calibrate` accepts for it, or that of `calibrate_counts`."""

    @property
    def add_remove(self) -> float | None:
        """Proven loss when one record is added or removed; None if the number of records is public."""
        return None

    @property
    @abstractmethod
    def replace_one(self) -> float:
        """Proven loss when one record is replaced."""

    @property
    def claimed(self) -> float | None:
        """The loss that the published analysis states, if it differs from the proven one; else None."""
        return None

    @property
    def range_factor(self) -> int:
        """The length of an interval of all log-ratios of two neighbouring laws, in units of the loss.

        2 always holds: from minus the loss to the loss. 1 if the interval depends on the neighbours, but its length
        does not, as with the exponential mechanism.
        """
        return 2

    @abstractmethod
    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate: the only step that uses private counts."""

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction | None:
        """Guaranteed marginal coverage over m candidates; None if none."""
        return None

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed on average over noisy numbers of records, of which `counted` is one.

        `size_scale` is the scale of their noise.
        """
        return False

    def covers_conditionally(self, level: Fraction, m: int, records: RecordCount, delta: float) -> bool:
        """Whether coverage given the calibration data is at least `level` with probability 1 - delta."""
        return False

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """A law, independent of the data, of a rank R with threshold >= R-th smallest score; None if unknown."""
        return None

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin; 1 if none is claimed."""
        return 1.0

    def stated(self) -> dict[str, Any]:
        """Its name and its fields, with fractions as str."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        texts = {name: str(value) for name, value in values.items() if isinstance(value, Fraction)}
        return {"name": self.name} | values | texts

    def facts(self, m: int) -> Facts:
        """The mechanism and its parameters in words, for m candidates."""
        parameters = {name: str(value) for name, value in self.stated().items()}
        return (("mechanism", parameters.pop("name")), *parameters.items())

    def theorem(self, guarantee: Guarantee) -> str:
        """The page of the documentation that proves such a guarantee, and its theorem."""
        return "docs/methods.md"


class ExponentialMechanism(Mechanism):
    """The exponential mechanism: it draws a candidate by integer utilities and one noise scale."""

    range_factor: ClassVar[int] = 1

    scale: float

    @abstractmethod
    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,)."""

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate, with OpenDP's sampler."""
        return select(self.utilities(counts), self.scale)


def mechanism_facts(mechanism: Mechanism | None, m: int) -> Facts:
    """`Mechanism.facts`; None stands for +inf without reading the data."""
    if mechanism is None:
        return (("mechanism", "none: +inf was returned without reading the data"),)
    return mechanism.facts(m)


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def certify(
    mechanism: Mechanism | None, alpha: Fraction, m: int, records: RecordCount, delta: float | None
) -> Guarantee:
    """The guarantee of a mechanism over m candidates (docs/theory.md, Theorems C2, C3).

    Without a mechanism the answer is +inf, which covers all records. A training-conditional guarantee that does not
    hold has coverage 0. A mechanism without a certificate has a guarantee of kind `"none"`.
    """
    level = 1 - alpha
    coverage: Fraction | None
    if mechanism is None:
        coverage = Fraction(1)
    elif delta is None:
        coverage = mechanism.certified(level, m, records)
    else:
        coverage = level if mechanism.covers_conditionally(level, m, records, delta) else Fraction(0)
    if coverage is None:
        return Guarantee("none", 0.0, None, records.n, records.n_min)

    # As a float, rounded down; the level itself is stated as requested.
    kind: GuaranteeKind = "marginal" if delta is None else "training_conditional"
    rounded = float(level) if coverage == level else float_below(coverage)
    return Guarantee(kind, rounded, delta, records.n, records.n_min)
