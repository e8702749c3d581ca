"""The answer to the query that counts, in files as a source of releases. **Private**: no message contains a count."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from confide.errors import FormatError, InputError
from confide.support import MOST_RECORDS, FileLocation, ObjectPath, as_place, require, same_place
from confide.tables.bin_counts import CountRow, Counts, Job
from confide.tables.count_files import Row, rows_of, whole_number

# The columns of the answer; of weighted records also the sum of weights. Group and bin are empty with a reason.
COLUMNS = ("query", "part", "reason", "group", "bin", "n")


@dataclass(frozen=True)
class CountsFiles:
    """The answer to `counting_query` as a source of `calibrate_table` with the same request. **Private**.

    Parameters
    ----------
    paths
        One or more files, CSV, JSON (a list of objects, or one object per line) or Parquet, or such objects of a store.
        Several files contain the counts of different records.

    Examples
    --------
    >>> CountsFiles("counts.csv").paths
    (PosixPath('counts.csv'),)
    """

    paths: Any

    def __post_init__(self) -> None:
        single = isinstance(self.paths, str | Path | ObjectPath)
        places = tuple(map(as_place, [self.paths] if single else self.paths))
        require("counts", places, "must be one file or more", got="none")
        if any(same_place(place, other) for place, other in combinations(places, 2)):
            raise InputError("counts", "must differ: one of them is named twice, and its records would count twice")
        object.__setattr__(self, "paths", places)


def read_counts(places: Sequence[FileLocation], jobs: Sequence[Job], digest: str) -> list[Counts]:
    """The counts of each job in the answers to the query with this digest; counts of several files are added.

    Raises
    ------
    InputError
        If a file cannot be read.
    FormatError
        If its rows are not counts of this query. The message names the row and contains no count.
    """
    totals = [Counts.none(job) for job in jobs]
    columns = answer_columns(jobs)
    for place in places:
        add_rows(rows_of(place, columns), digest, totals, f" in {str(place)!r}")
    if sum(float(counts.array.sum()) for counts in totals) > MOST_RECORDS * (jobs[0].groups + 1):
        raise InputError("counts", f"must add up to at most {MOST_RECORDS} records over all files")
    return totals


def answer_columns(jobs: Sequence[Job]) -> tuple[str, ...]:
    """The columns of the answer to the query of these jobs."""
    return COLUMNS if jobs[0].columns.weight is None else (*COLUMNS, "weight")


def add_rows(rows: Iterable[Row], digest: str, totals: Sequence[Counts], of_file: str = "") -> None:
    """Add the rows of one answer to the counts of each job, after checks."""
    jobs = [counts.job for counts in totals]
    counted = set()
    for number, row in enumerate(rows):
        where = f"counts[{number}]"
        if row["query"] != digest:
            must = f"must be the digest of this request's query{of_file}"
            remedy = "State the request for which the query was written, by the same options"
            raise FormatError(f"{where}.query", must, got="that of another query", remedy=remedy)
        checked = _checked(row, jobs, where, of_file)
        key = (checked.part, checked.reason, checked.group, checked.bin)
        if key in counted:
            raise FormatError(where, f"must differ from all earlier rows in part, reason, group or bin{of_file}")
        counted.add(key)
        totals[checked.part].add(checked)


def _checked(row: Row, jobs: Sequence[Job], where: str, of_file: str) -> CountRow:
    """The numbers of a row, each within its range."""

    def checked(name: str, least: int, most: int) -> int:
        number = whole_number(row[name], f"{where}.{name}", of_file)
        if not least <= number <= most:
            raise FormatError(f"{where}.{name}", f"must be from {least} to {most}{of_file}")
        return number

    part = checked("part", 0, len(jobs) - 1)
    job = jobs[part]
    weight = job.columns.weight
    # Unusable records have neither a bin nor a group nor a weight
    if reason := checked("reason", 0, len(job.columns.requirements)):
        return CountRow(n=checked("n", 0, MOST_RECORDS), reason=reason, part=part)
    score_bin = checked("bin", 0, len(job.edges))
    group = 0 if job.group is None else checked("group", 0, job.groups - 1)
    n = checked("n", 0, MOST_RECORDS)
    total = 0 if weight is None else checked("weight", 0, weight.weights.heaviest * n)
    return CountRow(n, score_bin, group, weight=total, part=part)
