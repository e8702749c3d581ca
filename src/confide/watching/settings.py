"""Public choices before the first look of a watch, and values that follow from them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, sqrt
from types import MappingProxyType

from confide.core import Release, as_release, refuse_overlapping
from confide.errors import InputError
from confide.evaluation import CountPrivacy, CountTables, Evaluation, size_names, size_parts
from confide.guarantee import LongRun
from confide.mechanisms import Neighbors
from confide.noisy_counts import noise_variance
from confide.support import MOST_RECORDS, as_number, exact_level, positive_integer, privacy_loss, require
from confide.watching.correction import Correction

# Counts beyond this, noise included, are refused
MOST_COUNT = 2**50


@dataclass(frozen=True)
class Reference:
    """Noisy number of records in each bin of set sizes; each is a sum with `noises` noises of scale 1/epsilon."""

    counts: tuple[int, ...]
    epsilon: float
    noises: int = 1

    def __post_init__(self) -> None:
        privacy_loss("epsilon", self.epsilon)
        positive_integer("noises", self.noises, most=5000)
        require("counts", max(map(abs, self.counts), default=0) <= MOST_COUNT, "must lie within +-2**50")


def reference_of(evaluation: Evaluation, release: str, bins: tuple[int, ...]) -> Reference:
    """Set sizes that a private evaluation counted; using them again has no privacy cost.

    Raises
    ------
    InputError
        If the evaluation is not of the release with this SHA-256, or did not count the sizes in these bins.
    """
    query = evaluation.query
    people = query.records_per_person
    must = "must be a private evaluation of the monitored release"
    require("reference", query.calibration == release, must, "one of another release")
    require("reference", query.epsilon is not None, "must be a private evaluation", "counts without noise")
    require("reference", people == 1, "must have one record of each person", f"up to {people}")
    sizes = next((partition for partition in query.partitions if partition.kind == "size"), None)
    if sizes is None or query.outcome != "covered":
        remedy = "Evaluate with `confide evaluate --epsilon` by size"
        raise InputError("reference", "must count set sizes", remedy=remedy)
    same_bins = tuple(map(int, sizes.edges)) == bins
    require("reference", same_bins, "must count the set sizes in the bins of the watch", "other bins")
    counted = CountTables.of(query, evaluation.counts, evaluation.sums).bin_counts(sizes)
    return Reference(tuple(counted.records.tolist()), query.noise, counted.noises)


MOST_LOOKS = 10_000
_MOST_PARTS = 10_000
_LEAST_BINS = 2
_MOST_BINS = 50


@dataclass(frozen=True)
class Settings:
    """Settings of a watch. They do not depend on the monitored records.

    Parameters
    ----------
    release
        SHA-256 of the release's JSON.
    epsilon
        Privacy loss of a look for each person in it.
    batch
        Planned number of records of a look. The bets are optimal for it; no guarantee depends on it.
    promised
        Guaranteed coverage of each monitored part: `{"": 0.9}`, or one entry for each group or class. Empty for a watch
        of set sizes.
    tolerance
        How far coverage may lie below `promised`.
    bins
        For a watch of set sizes: the smallest size of each bin, increasing from 0. Empty for a watch of coverage.
    looks
        Planned number of looks; more may follow.
    error
        Probability of a false alarm over all looks together.
    neighbors
        Adjacency that epsilon refers to.
    records_per_person
        Maximum number of records of one person in one look. Noise and bets allow them to be fully dependent. It is 1
        for set sizes.
    reference
        For set sizes: the counts to compare with; None for those of the first look.
    correction
        How looks correct the thresholds; None if they only test them.
    """

    release: str
    epsilon: float
    batch: int
    promised: Mapping[str, float] = field(default_factory=dict, hash=False)
    tolerance: float = 0.02
    bins: tuple[int, ...] = ()
    looks: int = 52
    error: float = 0.05
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1
    reference: Reference | None = None
    correction: Correction | None = None

    def __post_init__(self) -> None:
        # Every number in its range and of its type
        values = {
            "epsilon": self.cost.epsilon,
            "records_per_person": self.cost.records_per_person,
            "batch": positive_integer("batch", self.batch, most=MOST_RECORDS),
            "looks": positive_integer("looks", self.looks, most=MOST_LOOKS),
            "tolerance": as_number("tolerance", self.tolerance),
            "error": float(exact_level("error", self.error)),
            "promised": MappingProxyType(dict(self.promised)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

        self._check_monitored()
        self._check_together()

    def _check_monitored(self) -> None:
        """Check the release, and what of it is monitored: the coverage of its parts, or set sizes."""
        bins = self.bins
        is_sha256 = re.fullmatch("[0-9a-f]{64}", self.release)
        require("release", is_sha256, "must be the SHA-256 of its JSON, 64 hexadecimal digits")
        parts = len(self.promised)
        must = f"either promised, for at most {_MOST_PARTS:,} parts, or bins must be given, and not both"
        require("promised", bool(parts) != bool(bins) and parts <= _MOST_PARTS, must)
        are_rising = bins[:1] == (0,) and list(bins) == sorted(set(bins))
        must = f"must be {_LEAST_BINS} to {_MOST_BINS} increasing set sizes, the first of them 0"
        require("bins", not bins or (are_rising and _LEAST_BINS <= len(bins) <= _MOST_BINS), must)

    def _check_together(self) -> None:
        """Check what the other settings must fulfil for what is monitored."""
        require("tolerance", 0 <= self.tolerance < 1, "must lie in [0, 1)", repr(self.tolerance))
        differing = sum(not self.tolerance < level < 1 for level in self.promised.values())
        must = "must be smaller than each promised coverage, which must be below 1"
        require("tolerance", not differing, must, f"{differing} of {len(self.promised)} parts that differ")
        must = "must have a count for each bin of set sizes, and none for coverage"
        require("reference", self.reference is None or len(self.reference.counts) == len(self.bins), must)
        people = self.records_per_person
        must = "must be 1 for set sizes, whose reference needs independent records"
        require("records_per_person", people == 1 or not self.bins, must, str(people), "Keep one record of each person")
        if (correction := self.correction) is not None:
            must = "must be left out for set sizes, and have a scale for each monitored part"
            require("correct", len(correction.scales) == len(self.promised), must)
            correction.remarks(self.part_batch, self.noise_epsilon, self.looks)  # raises if noise would hide coverage

    @property
    def least(self) -> tuple[float, ...]:
        """Coverage that each part is tested for."""
        return tuple(level - self.tolerance for level in self.promised.values())

    @property
    def cost(self) -> CountPrivacy:
        """Privacy of the counts of one look, whose number of records stays secret."""
        return CountPrivacy(self.neighbors, self.epsilon, self.records_per_person, public_n=False)

    @property
    def noise_epsilon(self) -> float:
        """Parameter of the noise of every count; the scale is 1/noise_epsilon."""
        return self.cost.noise

    @property
    def part_batch(self) -> float:
        """Planned number of records of each monitored part of a look."""
        return self.batch / max(len(self.promised), 1)

    @property
    def bin_names(self) -> list[str]:
        """Names of the size bins, such as `0`, `5-9`, and `20+` for the last."""
        return list(size_names(self.bins))

    @property
    def compared(self) -> str:
        """Name of the reference for set sizes, in words."""
        return "the first look" if self.reference is None else "a private evaluation"

    @property
    def cells(self) -> int:
        """Number of noisy counts in a look."""
        return len(self.bins) or 2 * len(self.promised)

    def remarks(self, release: Release) -> tuple[str, ...]:
        """Warnings before anything is spent, about small looks and about a tolerance that chance alone exceeds."""
        remarks = list(self._too_small())
        if self.promised:
            remarks += _too_strict(release, self.tolerance)
        if self.correction:
            remarks += self.correction.remarks(self.part_batch, self.noise_epsilon, self.looks)
        return tuple(remarks)

    def _too_small(self) -> tuple[str, ...]:
        groups = max(len(self.promised), 1)
        size = self.batch // groups
        enough = deserved_batch(self.promised, self.noise_epsilon) // groups
        if size >= enough:
            return ()
        each = "" if groups < 2 else f"; a group has so many if {self.batch:,} are divided evenly"
        return (
            f"a look of {size:,} records shows little: noise exceeds sampling error below {enough:,} records; collect "
            f"small batches until there are as many, at no privacy cost{each}",
        )


def promised_of(release: Release) -> dict[str, float]:
    """Guaranteed coverage of all records of a release together, by the name "", or of every group or class.

    Raises
    ------
    InputError
        If the release has no coverage guarantee, or several levels.
    """
    must = "must promise coverage to be monitored"
    remedy = "Evaluate each batch with `confide evaluate --epsilon`, which reports the loss with an interval"
    require("release", as_release(release).loss is None, must, "a bound on a loss", remedy)
    remedy = "Continue with its watch, or start one of the calibrated release"
    corrected = isinstance(release.first.guarantee, LongRun)
    require("release", not corrected, must, "a corrected release", remedy)
    must = "must have one level to be monitored"
    require("release", release.by != "level", must, remedy="Choose one of its levels with alpha")
    refuse_overlapping(release, "Evaluate each batch with `confide evaluate --epsilon`, which reports every group")
    if release.disjoint:
        return {str(name): threshold.coverage for name, threshold in release.parts.items()}
    return {"": release.promised}


def size_bins(classes: int) -> tuple[int, ...]:
    """Smallest size of each bin of set sizes for a number of classes, as in a private evaluation.

    Examples
    --------
    >>> size_bins(3), size_bins(100)
    ((0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 10, 20, 50, 100))
    """
    return tuple(int(edge) for edge in size_parts(classes).edges)


def _too_strict(release: Release, tolerance: float) -> tuple[str, ...]:
    """Warning that the coverage of a correct release may vary by more than the tolerance."""
    # Twice the standard deviation of coverage after one calibration, where an average is promised
    spreads = list[tuple[float, int]]()
    for threshold in release.parts.values():
        n = threshold.n or (threshold.size.counted if threshold.size else 0)
        if threshold.guarantee.kind == "marginal" and n > 0:
            spreads.append((2 * sqrt(threshold.coverage * (1 - threshold.coverage) / n), n))
    needed, n = max(spreads, default=(0.0, 0))
    if needed <= tolerance:
        return ()
    return (
        f"tolerance {tolerance:g} may cause an alarm for a correct release: coverage after one calibration with {n:,} "
        f"records varies, and can lie up to {needed:.3f} below the promise, which is an average. Use a tolerance of "
        f"{ceil(1000 * needed) / 1000:g}, or calibrate with delta, which guarantees coverage after one calibration",
    )


def records_for(tolerance: float, level: float) -> int:
    """Number of calibration records at which twice the spread of a correct release's coverage equals the tolerance.

    Examples
    --------
    >>> records_for(0.02, 0.9)
    900
    """
    return ceil(4 * level * (1 - level) / tolerance**2 * (1 - 1e-9))  # a whole number is not rounded up


def records_enough(coverage: float, epsilon: float) -> int:
    """Number of records at which sampling and noise vary a look's coverage equally; smaller looks show little.

    Examples
    --------
    >>> records_enough(0.9, 1.0), records_enough(0.9, 0.3), records_enough(0.9, 0.1)
    (21, 246, 2221)
    """
    return ceil(noise_variance(epsilon) / (coverage * (1 - coverage)))


def deserved_batch(promised: Mapping[str, float], epsilon: float) -> int:
    """Number of records of a look whose parts all have `records_enough`, if they are of one size."""
    return max(len(promised), 1) * records_enough(min(promised.values(), default=0.5), epsilon)
