"""What sizes of sets are compared with, if it is known before the first look: a private evaluation."""

from dataclasses import dataclass
from math import prod

import numpy as np

from confide.errors import InputError
from confide.evaluation import PrivateEvaluation
from confide.support import positive_integer, privacy_loss

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
        raise InputError("reference must be a private evaluation of the release that is watched; it names another")
    if asked.records_per_person > 1:
        raise InputError("reference must have one record of each person: shares are bounded for independent records")
    for table, counts in zip(asked.tables, found.counts, strict=True):
        kinds = [asked.partitions[place].kind for place in table]
        if "size" in kinds and asked.outcome == "covered":
            axis, shape = kinds.index("size"), asked.shape(table)
            if tuple(map(int, asked.partitions[table[axis]].edges)) != bins:
                raise InputError("reference must have the classes of the batches: it counts other sizes")
            cells = np.array(counts, np.int64).reshape(shape)
            sums = cells.sum(axis=tuple(place for place in range(len(shape)) if place != axis))
            return Reference(tuple(sums.tolist()), asked.noise, prod(shape) // shape[axis])
    raise InputError("reference must have set sizes; evaluate with `confide evaluate --epsilon` by size")
