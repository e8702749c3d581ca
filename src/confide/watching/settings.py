"""What is fixed before the first look of a watch: public choices, and what follows from them.

Sizes of sets are compared with a private evaluation, if one was made before the first look.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, prod, sqrt
from types import MappingProxyType

import numpy as np

from confide.errors import InputError, InputTypeError
from confide.evaluation import CountPrivacy, PrivateEvaluation, size_parts
from confide.mechanisms import Neighbors, PrivacyStatement
from confide.releases import Release, as_release
from confide.support import (
    MOST_RECORDS,
    as_number,
    exact_level,
    positive_integer,
    privacy_loss,
)
from confide.watching.power import records_enough, too_small

MOST_NOISES = 5000


@dataclass(frozen=True)
class Reference:
    """Noisy numbers of records by the size of their sets.

    Parameters
    ----------
    counts
        By bin.
    epsilon
        Of one noise: its scale is 1/epsilon.
    noises
        How many noises each count holds, as the sum of so many cells.
    """

    counts: tuple[int, ...]
    epsilon: float
    noises: int = 1

    def __post_init__(self) -> None:
        privacy_loss("epsilon", self.epsilon)
        positive_integer("noises", self.noises, most=MOST_NOISES)


def reference_of(found: PrivateEvaluation, release: str, bins: tuple[int, ...]) -> Reference:
    """The sizes that a private evaluation counted; they cost nothing again.

    Parameters
    ----------
    found
        Of the release that is watched, with its set sizes.
    release
        SHA-256 of that release.
    bins
        The smallest size of each bin of the watch.

    Raises
    ------
    InputError
        If it is of another release, or did not count the sizes in these bins.
    """
    asked = found.question
    if asked.calibration != release:
        raise InputError(
            "reference", "must be a private evaluation of the release that is watched", got="one of another"
        )
    if asked.records_per_person > 1:
        raise InputError("reference", "must have one record of each person", got=f"up to {asked.records_per_person}")
    for table, counts in zip(asked.tables, found.counts, strict=True):
        kinds = [asked.partitions[place].kind for place in table]
        if "size" in kinds and asked.outcome == "covered":
            axis, shape = kinds.index("size"), asked.shape(table)
            if tuple(map(int, asked.partitions[table[axis]].edges)) != bins:
                raise InputError("reference", "must count the set sizes in the bins of the watch", got="other bins")
            cells = np.array(counts, np.int64).reshape(shape)
            sums = cells.sum(axis=tuple(place for place in range(len(shape)) if place != axis))
            return Reference(tuple(sums.tolist()), asked.noise, prod(shape) // shape[axis])
    remedy = "Evaluate with `confide evaluate --epsilon` by size"
    raise InputError("reference", "must count set sizes", remedy=remedy)


TOLERANCE, LOOKS, ERROR = 0.02, 52, 0.05
MOST_LOOKS, MOST_PARTS = 10_000, 10_000
LEAST_BINS, MOST_BINS = 2, 50
MOST_NAME = 200


@dataclass(frozen=True)
class Settings:
    """What a watch is about. Nothing here depends on the records that are looked at.

    Parameters
    ----------
    release
        SHA-256 of the release's JSON.
    epsilon
        Privacy loss of a look, per person in it.
    batch
        The planned number of records of a look: the bets suit it, and no promise depends on it.
    promised
        What is watched, and its promised coverage: `{"": .9}`, or one entry for each group or class. Empty for a watch
        of set sizes.
    tolerance
        How far coverage may lie below what is promised.
    bins
        For a watch of set sizes: the smallest size of each bin, increasing from 0. Empty for one of coverage.
    looks
        How many are planned; more may follow.
    error
        The chance of a false alarm, ever.
    neighbors
        The relation that epsilon is stated for.
    records_per_person
        The most records of one person in one look: noise and bets suit it, for they may be alike. 1 for set sizes.
    reference
        For set sizes: what they are compared with; None for the first look.
    """

    release: str
    epsilon: float
    batch: int
    promised: Mapping[str, float] = field(default_factory=dict, hash=False)
    tolerance: float = TOLERANCE
    bins: tuple[int, ...] = ()
    looks: int = LOOKS
    error: float = ERROR
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1
    reference: Reference | None = None

    def __post_init__(self) -> None:
        if not (len(self.release) == 64 and set(self.release) <= set("0123456789abcdef")):
            raise InputError("release", "must be the SHA-256 of its JSON, 64 hexadecimal digits")
        plain = {
            "epsilon": self.cost.epsilon,
            "batch": positive_integer("batch", self.batch, most=MOST_RECORDS),
            "tolerance": as_number("tolerance", self.tolerance),
            "looks": positive_integer("looks", self.looks, most=MOST_LOOKS),
            "error": as_number("error", self.error),
            "records_per_person": self.cost.records_per_person,
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        exact_level("error", self.error)
        if not 0 <= self.tolerance < 1:
            raise InputError("tolerance", "must lie in [0, 1)", got=repr(self.tolerance))
        if bool(self.promised) == bool(self.bins) or len(self.promised) > MOST_PARTS:
            raise InputError("promised", f"must be given, for at most {MOST_PARTS:,} parts, or bins, and not both")
        if self.bins and (
            self.bins[0] != 0
            or not LEAST_BINS <= len(self.bins) <= MOST_BINS
            or any(a >= b for a, b in zip(self.bins, self.bins[1:], strict=False))
        ):
            raise InputError("bins", f"must be {LEAST_BINS} to {MOST_BINS} increasing set sizes, the first of them 0")
        if self.reference is not None and len(self.reference.counts) != len(self.bins):
            raise InputError("reference", "must have a count for each bin of set sizes, and none for coverage")
        object.__setattr__(self, "promised", MappingProxyType(dict(self.promised)))
        if self.bins and self.records_per_person > 1:
            raise InputError(
                "records_per_person",
                "must be 1 for set sizes, whose reference needs independent records",
                got=str(self.records_per_person),
                remedy="Keep one record of each person",
            )
        low = [name for name, level in self.promised.items() if not self.tolerance < level < 1]
        if low:
            requirement = "must be smaller than each promised coverage, which must be below 1"
            raise InputError("tolerance", requirement, got=f"{len(low)} of {len(self.promised)} parts that differ")

    @property
    def least(self) -> tuple[float, ...]:
        """The coverage that each part is tested for."""
        return tuple(level - self.tolerance for level in self.promised.values())

    @property
    def cost(self) -> CountPrivacy:
        """The privacy of the counts of one look, whose number of records stays secret."""
        return CountPrivacy(self.neighbors, self.epsilon, self.records_per_person, public_n=False)

    @property
    def noise_epsilon(self) -> float:
        """The noise of every count has the scale 1/noise_epsilon."""
        return self.cost.noise

    @property
    def privacy(self) -> PrivacyStatement:
        """What one look costs each person in it."""
        return self.cost.statement

    @property
    def bin_names(self) -> list[str]:
        """The sizes of each bin: `0`, `5-9`, and `20+` for the last."""
        ends = zip(self.bins, self.bins[1:], strict=False)
        return [*(str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in ends), f"{self.bins[-1]}+"]

    @property
    def compared(self) -> str:
        """What set sizes are compared with, in words."""
        return "the first look" if self.reference is None else "a private evaluation"

    @property
    def cells(self) -> int:
        """How many noisy counts a look has."""
        return len(self.bins) or 2 * len(self.promised)

    def remarks(self, release: Release, n_typical: int | None = None) -> tuple[str, ...]:
        """What is worth a word before anything is spent: small looks, and a tolerance that luck alone exceeds.

        `n_typical` is a public guess of the number of calibration records, where that is secret.
        """
        strict = _too_strict(release, self.tolerance, n_typical) if self.promised else ()
        return (*self._too_small(), *strict)

    def _too_small(self) -> tuple[str, ...]:
        size = self.batch // max(len(self.promised), 1)
        middle = min(self.promised.values(), default=0.5)
        enough = records_enough(middle, self.noise_epsilon)
        if size >= enough:
            return ()
        each = "" if len(self.promised) < 2 else f", and so many are in a group, of {self.batch:,} evenly divided"
        return (too_small(size, enough) + each,)


def check_look_name(name: object) -> str:
    """The name of a look: public, and not reused."""
    if not isinstance(name, str):
        raise InputTypeError("look", "must be a name", got=type(name).__name__)
    if not (0 < len(name) <= MOST_NAME and name.isprintable() and name.strip() == name):
        raise InputError("look", f"must be 1 to {MOST_NAME} printable characters without spaces at its ends")
    return name


def promised_of(release: Release) -> dict[str, float]:
    """What is watched of a release, with its promised coverage: all records together, or every group or class.

    Raises
    ------
    InputError
        If the release has no coverage, or several.

    Examples
    --------
    >>> import confide, numpy as np
    >>> promised_of(confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0))
    {'': 0.9}
    """
    if as_release(release).by == "loss":
        raise InputError(
            "release",
            "must promise coverage to be watched",
            got="a bound on a loss",
            remedy="Evaluate each batch by `confide evaluate --epsilon`, which states its loss with an interval",
        )
    if release.by == "level":
        raise InputError("release", "must have one level to be watched", remedy="Choose one of its levels with alpha")
    if release.disjoint:
        return {str(name): part.coverage for name, part in release.parts.items()}
    return {"": release.promised}


def size_bins(classes: int) -> tuple[int, ...]:
    """The smallest size of each bin of set sizes, for so many classes: those of a private evaluation.

    Examples
    --------
    >>> size_bins(3), size_bins(100)
    ((0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 10, 20, 50, 100))
    """
    return tuple(int(edge) for edge in size_parts(classes).edges)


def _too_strict(release: Release, tolerance: float, n_typical: int | None) -> tuple[str, ...]:
    """Coverage of a correct release varies with its calibration records, more than the tolerance perhaps."""
    known = ((part, part.n or n_typical) for part in release.parts.values() if part.guarantee.kind == "marginal")
    spread = [(2 * sqrt(part.coverage * (1 - part.coverage) / n), n) for part, n in known if n]
    if not spread or max(spread)[0] <= tolerance:
        return ()
    needed, n = max(spread)
    return (
        f"tolerance {tolerance:g} may raise an alarm over a correct release: the coverage of one from {n:,} records "
        f"varies by chance, and lies up to {needed:.3f} below its promise, which is an average; give a tolerance of "
        f"{ceil(1000 * needed) / 1000:g}, or calibrate with delta, which promises the coverage of the very release",
    )


def records_for(tolerance: float, level: float) -> int:
    """Calibration records from which on a tolerance is twice the spread of a correct release's coverage.

    Examples
    --------
    >>> records_for(0.02, 0.9)
    900
    """
    return ceil(4 * level * (1 - level) / tolerance**2 * (1 - 1e-9))
