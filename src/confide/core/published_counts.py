"""Noisy counts that another engine made, with the law of their noise: they are public, and cost nothing more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import column_names
from confide.candidates import BUILDERS, Candidates
from confide.core.documents import Document
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Noise, StatedPrivacy
from confide.scores import score_kind
from confide.support import MOST_RECORDS, Classes, Section, positive_integer, privacy_loss, public_classes, require

# Counts that look rounded or suppressed are less likely than the first, if they are not; counts far below 0, and sums
# far from the number of records, than the second.
_RARE = 1e-4
_VERY_RARE = 1e-9

# Counts look clipped only if at least one in so many is 0.
_MANY_ZEROS = 10

_AS_DRAWN = "Counts must be as they were drawn: no clipping, rounding, suppression or consistency step"


@dataclass(frozen=True, eq=False, repr=False)
class PublishedCounts(Document):
    """Noisy counts of nonconformity scores per bin, as another engine published them, and the law of their noise.

    Parameters
    ----------
    counts
        Integers, shape (m,), one for every bin, also for empty ones; as they were drawn, including negative ones. Or a
        data frame, or a dictionary of columns, with the columns bin (from 0) and count; or a collection of DAP, a
        dictionary with its report_count, which sets n, and its aggregate_result. Bin j contains the scores above
        candidate j-1 and up to candidate j, the candidate included; the last bin those up to +inf. If the candidate is
        in the next bin instead, the guarantee holds as well.
    candidates
        The public candidates, the upper ends of the bins.
    noise
        The law of the independent noise in each count.
    n
        The public number of records; None if it is secret.
    n_noisy, n_noise
        If the number of records is secret: a noisy number of records, and the law of its noise. This must be discrete
        Laplace noise of one maker, independent of the noise in the counts.
    score, classes
        As in `confide.calibrate`.
    epsilon
        The privacy loss that the maker of the counts states; it is recorded, not verified.

    Raises
    ------
    InputError, InputTypeError
        If counts are not integers or not one for each bin, or another argument cannot be used.

    Examples
    --------
    >>> noise = Noise.discrete_laplace(2.0, copies=2)
    >>> counts = PublishedCounts([91, 55, -3, 1], Candidates.of([0.2, 0.5, 0.8]), noise, n=150, score="lac")
    >>> counts
    PublishedCounts(4 bins, 150 records, independent discrete Laplace noise of scale 2, twice)
    >>> PublishedCounts.from_json(counts.to_json()).counts
    array([91, 55, -3,  1])
    """

    counts: NDArray[np.int64]
    candidates: Candidates
    noise: Noise
    n: int | None = None
    score: str | None = None
    classes: Classes | None = None
    epsilon: float | None = None
    n_noisy: int | None = None
    n_noise: Noise | None = None

    def __post_init__(self) -> None:
        # The types, and the number of records of a collection of DAP.
        for name, kind in (("candidates", Candidates), ("noise", Noise)):
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError(name, f"must be of type {kind.__name__}", got=type(getattr(self, name)).__name__)
        if self.n is None and isinstance(self.counts, Mapping):
            object.__setattr__(self, "n", self.counts.get("report_count"))

        object.__setattr__(self, "counts", _one_per_bin(self.counts, self.candidates.size))

        # The number of records, public or noisy, and what is recorded.
        if self.n is not None:
            positive_integer("n", self.n, most=MOST_RECORDS)
        self._check_noisy_number()
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", privacy_loss("epsilon", self.epsilon))
        if self.classes is not None:
            object.__setattr__(self, "classes", public_classes("classes", self.classes))
        object.__setattr__(self, "score", score_kind(self.score).name)

    def _check_noisy_number(self) -> None:
        """Reject a noisy number without its law, beside a public one, or with noise that no theorem covers."""
        is_complete = (self.n_noisy is None) == (self.n_noise is None)
        require("n_noise", is_complete, "must be given with n_noisy, and only with it")
        if self.n_noisy is None or self.n_noise is None:
            return
        require("n_noisy", self.n is None, "must be left out: the number of records is public")
        if type(self.n_noisy) is not int or abs(self.n_noisy) > MOST_RECORDS:
            raise InputTypeError("n_noisy", "must be an integer between -2**48 and 2**48")
        laplace = isinstance(self.n_noise, Noise) and self.n_noise.kind == "discrete_laplace"
        require("n_noise", laplace and self.n_noise.copies == 1, "must be discrete Laplace noise of one maker")
        must = "must be discrete Laplace or Gaussian noise if the number of records is secret"
        require("noise", self.noise.kind != "table", must, remedy="State n")

    @property
    def edges(self) -> list[float] | None:
        """The finite candidates if their recipe does not determine them, else None."""
        return None if self.candidates.recipe["kind"] in BUILDERS else self.candidates.edges.tolist()

    def __len__(self) -> int:
        return len(self.counts)

    def check(self) -> str:
        """Reject counts that were not made as stated, as far as they show it; return a warning or an empty text.

        Raises
        ------
        InputError
            If counts look suppressed, rounded or cumulated, if one is so far below 0 that the noise would reach it in
            any bin with probability at most 1e-9, or if they do not add up to the public number of records.

        Examples
        --------
        >>> counts = PublishedCounts([9, 0, 0, 7], Candidates.of([1.0, 2.0, 3.0]), Noise.discrete_laplace(1.0), n=90)
        >>> counts.check()
        Traceback (most recent call last):
            ...
        confide.errors.InputError: counts: must add up to n=90, within 32 for the noise; got 16. State the right n, ...
        """
        # Counts that the stated noise hardly makes.
        law = self.noise.in_one_count()
        self._refuse_rounded(law)
        self._refuse_far_below_zero(law)
        zeros = int((self.counts == 0).sum())
        is_clipped = self._looks_clipped(law, zeros)
        if is_clipped:
            self._refuse_suppressed(law, zeros)
        self._refuse_other_sum(is_clipped=is_clipped)

        # Clipped ones, which are safe.
        if not is_clipped:
            return ""
        each = float(law @ np.arange(len(law)))
        return (
            "the counts look clipped at 0: the promise holds, but each empty bin above the threshold costs about "
            f"{each:.2g} records. {_AS_DRAWN}"
        )

    def _refuse_rounded(self, law: NDArray[np.float64]) -> None:
        divisor = int(np.gcd.reduce(self.counts))
        is_multiple = float(law[0]) + 2 * float(law[divisor::divisor].sum()) if divisor > 1 else 1.0
        if is_multiple ** len(self) <= _RARE:
            raise InputError("counts", "must not be rounded", got=f"multiples of {divisor}", remedy=_AS_DRAWN)

    def _refuse_far_below_zero(self, law: NDArray[np.float64]) -> None:
        reach = self._reach(law)
        below = self.counts[self.counts < -reach]
        if len(below):
            must = f"must be above {-reach - 1}, as the stated noise makes them"
            remedy = "State the right noise, and read the counts in an integer type that holds them: others wrap around"
            raise InputError("counts", must, got=f"{len(below)} below, the least {below.min()}", remedy=remedy)

    def _looks_clipped(self, law: NDArray[np.float64], zeros: int) -> bool:
        """Whether there are more zeros than the noise makes, and nothing below them."""
        if (self.counts < 0).any() or _MANY_ZEROS * zeros < len(self):
            return False
        return float(law[0] / law.sum()) ** zeros <= _RARE

    def _refuse_suppressed(self, law: NDArray[np.float64], zeros: int) -> None:
        """Reject clipped counts with a gap above 0, whose counts are among the zeros."""
        gap = int(self.counts[self.counts > 0].min(initial=MOST_RECORDS)) - 1
        at_most_zero = float(law.sum())
        within_gap = float(law[1 : gap + 1].sum())
        if gap < MOST_RECORDS - 1 and (at_most_zero / (at_most_zero + within_gap)) ** zeros <= _RARE:
            raise InputError("counts", "must not be suppressed", got=f"none from 1 to {gap}", remedy=_AS_DRAWN)

    def _refuse_other_sum(self, *, is_clipped: bool) -> None:
        """Reject counts that do not add up to a public number of records; clipping only raises their sum."""
        if self.n is None:
            return
        total = int(self.counts.sum())
        reach = self.noise.reach(len(self), _VERY_RARE)
        if total < self.n - reach or (total > self.n + reach and not is_clipped):
            must = f"must add up to n={self.n}, within {reach} for the noise"
            raise InputError("counts", must, got=str(total), remedy=f"State the right n, and all bins. {_AS_DRAWN}")

    def _reach(self, law: NDArray[np.float64]) -> int:
        """The least r with a probability of at most 1e-9 that the noise of some bin is below -r."""
        # P(S > r) for r = 0, 1, ..., with the mass that the listed law of one copy leaves out.
        above = np.append(np.cumsum(law[:0:-1])[::-1], 0.0) + self.noise.copies * self.noise.missing
        rare = len(self) * above <= _VERY_RARE
        return int(rare.argmax()) if rare.any() else MOST_RECORDS

    @property
    def privacy(self) -> StatedPrivacy:
        """The privacy loss as the maker states it, or as it follows from the noise."""
        scale = None if self.n_noise is None else self.n_noise.scale
        return StatedPrivacy.of(self.noise, self.n, self.epsilon, scale)

    def _brief(self) -> str:
        size = "a secret number of records" if self.n is None else f"{self.n:,} records"
        return f"{len(self)} bins, {size}, {self.noise}"

    def _section(self) -> Section:
        facts = (("candidates", self.candidates.description), ("privacy", str(self.privacy)))
        return Section("PublishedCounts", f"noisy counts: {self._brief()}", facts)


def _one_per_bin(given: Any, m: int) -> NDArray[np.int64]:
    """The counts as integers that cannot be changed, one for each of m bins."""
    counts = np.asarray(in_order(given))
    if counts.dtype.kind not in "iu":
        remedy = "Counts with continuous noise, such as floating-point Laplace noise, have no certificate"
        raise InputTypeError("counts", "must be integers", got=f"dtype {counts.dtype}", remedy=remedy)
    must = f"must have shape ({m},), one for each of two or more candidates, +inf included"
    remedy = "Empty bins have counts as well: their noise"
    require("counts", counts.shape == (m,) and m > 1, must, got=f"shape {counts.shape}", remedy=remedy)
    largest = np.abs(counts.astype(np.float64)).max()
    require("counts", largest <= MOST_RECORDS, "must lie between -2**48 and 2**48")
    counts = counts.astype(np.int64)
    counts.flags.writeable = False
    return counts


# The modulus of Field128, in which Prio3Histogram adds: a negative count is represented by its sum with this.
_MODULUS = 2**66 * 4611686018427387897 + 1

# The modulus has 39 digits.
_MOST_DIGITS = 40


def in_order(given: Any) -> Any:
    """The counts of a collection of DAP, or of a table with the columns bin and count, in order; others unchanged."""
    # A collection states residues as texts.
    if isinstance(given, Mapping) and "aggregate_result" in given:
        texts = list(map(str, np.atleast_1d(np.asarray(given["aggregate_result"], dtype=object)).tolist()))
        short = all(text.removeprefix("-").isdecimal() and len(text) <= _MOST_DIGITS for text in texts)
        if not short or any(int(text) >= _MODULUS for text in texts):
            raise InputError("counts", "must be integers below the modulus of Field128")
        return [value - _MODULUS if 2 * value > _MODULUS else value for value in map(int, texts)]

    # A table has each bin once, in any order.
    names = tuple(given) if isinstance(given, Mapping) else column_names(given, "counts")
    if names is None or not {"bin", "count"} <= {*names}:
        return given
    bins, counts = (np.asarray(given[name]).ravel().tolist() for name in ("bin", "count"))
    by_bin = dict(zip(map(str, bins), counts, strict=False))
    expected = list(map(str, range(len(bins))))
    if len(bins) != len(counts) or set(by_bin) != set(expected):
        raise InputError("counts", "must have each bin once, from 0", remedy="Empty bins have counts as well")
    return [by_bin[place] for place in expected]
