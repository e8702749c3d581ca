"""Evaluations without noise: records may be shown, and the counts agree with each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.partition import Partition
from confide.evaluation.query import CountQuery
from confide.support import MOST_RECORDS

MOST_EXAMPLES = 1000


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


def check_exact(
    q: CountQuery, cells: Sequence[NDArray[Any]], sums: Sequence[Sequence[float]], examples: Sequence[Sequence[Example]]
) -> None:
    """Check the counts of a query, its sums in each table, and the examples at each level."""
    # As many records, sums and examples as there can be.
    total, *others = cells
    if any((counts < 0).any() for counts in cells) or not 0 < total.sum() <= MOST_RECORDS:
        raise InputError("counts", "must be of at least one record, and not negative")
    forms = [q.sums_shape(table) for table in q.tables] if q.measure else []
    wrong = [len(of_table) for of_table in sums] != [math.prod(form) for form in forms]
    if wrong or any(number < 0 for of_table in sums for number in of_table):
        raise InputError("sums", "must be one for each part and level, and not negative")
    shown = {len(of_level) for of_level in examples}
    if shown and (len(examples) != q.levels or len(shown) != 1 or max(shown) > min(MOST_EXAMPLES, total.sum())):
        raise InputError("examples", f"must be at most {MOST_EXAMPLES}, of the records, for each level")

    # Each partition divides all records and all labels.
    measured = [np.array(of_table).reshape(form) for of_table, form in zip(sums, forms, strict=True)]
    for place, (counts, partition) in enumerate(zip(others, q.partitions, strict=True), start=1):
        held = q.held(partition.statement, ()) if partition.statement else None
        expected = total if held is None else np.array([total[held].sum(), total[~held].sum()])
        if q.outcome != "area" and not np.array_equal(counts.sum(axis=0), expected):
            raise InputError("counts", "must add up to those of all records in each partition")
        if partition.kind == "size":
            _check_sizes(counts, partition, measured[place][:, 0])
        if q.measure == "size" and held is None and not np.array_equal(measured[place].sum(axis=0), measured[0]):
            raise InputError("sums", "must add up to the labels in all sets")


def _check_sizes(counts: NDArray[Any], partition: Partition, labels: NDArray[Any]) -> None:
    sizes = np.arange(len(partition))
    if partition.edges != tuple(sizes) or counts[0, :-1].any():
        raise InputError("partitions", "must be of single sizes, of which 0 covers no label")
    if not np.array_equal(labels, counts.sum(axis=1) * sizes):
        raise InputError("sums", "must be the labels in sets of each size")
