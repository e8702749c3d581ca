"""`opendp-quantile`: OpenDP's private quantile over candidates, run by OpenDP itself, without a coverage guarantee.

With `level` a, candidate c has score -|(1-a) #(X < c) - a #(X > c)|, for scores X rounded up to candidates. It is
unsuitable for calibration, as tests show: it aims at the level itself, not at (n+1)(1-alpha) plus a margin for the
noise, and scores that equal c count on neither side, so that ties can move the result to the wrong end.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.interface import Mechanism
from confide.selection import check_sampler, with_contrib
from confide.support import float_above, scale_for


@dataclass(frozen=True)
class OpenDPQuantile(Mechanism):
    """OpenDP's quantile mechanism for the level a, stated completely; `scale` is in units of OpenDP's score.

    Unsized data (`size` is None): the scores of neighbours differ by at most max(a, 1-a), and the range distance is
    twice that. Sized data: half a unit per addition or removal, and range distance 2 per replaced record.
    """

    name: ClassVar[Literal["opendp-quantile"]] = "opendp-quantile"
    range_factor: ClassVar[int] = 1

    level: Fraction
    size: int | None
    scale: float

    @property
    def add_remove(self) -> float | None:
        """Loss when one record is added or removed; None for sized data."""
        if self.size is not None:
            return None
        return float_above(_unsized_range(self.level) / Fraction(self.scale))

    @property
    def replace_one(self) -> float:
        """Loss when one record is replaced."""
        distance = 2 if self.size is not None else 2 * _unsized_range(self.level)
        return float_above(distance / Fraction(self.scale))

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate with OpenDP's private quantile."""
        records = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        return int(self.measurement(len(counts))(records))

    def measurement(self, m: int) -> Any:
        """OpenDP's measurement over m candidates; its map states a zCDP loss by distance, 2 for a replaced record."""
        check_sampler()
        from opendp.measurements import make_private_quantile
        from opendp.measures import zero_concentrated_divergence

        return with_contrib(
            lambda: make_private_quantile(
                *_space(self.size),
                zero_concentrated_divergence(),
                list(range(m)),
                alpha=float(self.level),
                scale=self.scale,
            )
        )


def opendp_quantile_for(level: Fraction, epsilon: float, size: int | None) -> OpenDPQuantile:
    """The mechanism of the least noise for this loss.

    epsilon is the loss of a replaced record if `size` is the number of records, and of an added or removed record if
    `size` is None.
    """
    distance = _unsized_range(level) if size is None else Fraction(2)
    return OpenDPQuantile(level, size, scale_for(distance, epsilon))


def _space(size: int | None) -> tuple[Any, Any]:
    """OpenDP's domain and metric of records, for sized or unsized data."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import symmetric_distance

    atoms = atom_domain(T="i64")
    domain = vector_domain(atoms) if size is None else vector_domain(atoms, size=size)
    return domain, symmetric_distance()


def _unsized_range(level: Fraction) -> Fraction:
    # OpenDP rounds the level down to a multiple of 1/10,000; the larger of the level and its complement is rounded up.
    return 2 * Fraction(math.ceil(max(level, 1 - level) * 10_000), 10_000)
