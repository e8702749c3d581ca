"""What every mechanism says about itself. A calibration stores nothing else about how it was made."""

from fractions import Fraction
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw

MechanismName: TypeAlias = Literal[
    "slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "pcoqs", "pcoqs-published", "none"
]

MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)


class Mechanism(Protocol):
    """A frozen dataclass that states a mechanism completely, in public numbers. What it does not say, none claims."""

    def __hash__(self) -> int:
        """Equal statements are one mechanism."""
        return object.__hash__(self)

    @property
    def name(self) -> MechanismName | Literal["noisy-labels"]:
        """The name under which `calibrate` knows it; that of `calibrate_noisy_labels` besides."""

    @property
    def add_remove(self) -> float | None:
        """Proven loss when one record is added or removed; None if the number of records is public."""
        return None

    @property
    def replace_one(self) -> float:
        """Proven loss when one record is replaced."""

    @property
    def claimed(self) -> float | None:
        """The loss that the published analysis states, where it differs from the proven one; else None."""
        return None

    @property
    def bounded_range(self) -> bool:
        """Whether the loss is bounded-range, so that `zcdp_of_range` of it holds besides."""
        return False

    @property
    def zcdp(self) -> float | None:
        """Proven zCDP loss when one record is replaced, of a mechanism that has no pure epsilon; else None."""
        return None

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate: the only step that sees private counts."""

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction | None:
        """Guaranteed marginal coverage over m candidates, for a public n or every n >= n_min; None if none is."""
        return None

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """A law, independent of the data, of a rank R with threshold >= R-th smallest score; None if unknown."""
        return None

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin; 1 if none is claimed."""
        return 1.0
