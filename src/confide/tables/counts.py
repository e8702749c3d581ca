"""From a table to histograms, in one pass; only counts are kept. PostgreSQL and Spark count where the rows live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.tables.named_column import NamedColumn, group_column
from confide.tables.open_table import opened
from confide.tables.people import FLAG, People
from confide.tables.progress import Progress, silent
from confide.tables.readings import ClassReading, Reading, refuse_first_rows
from confide.tables.stream_counts import Job, count_rows
from confide.tables.table import Read, Table
from confide.tables.weight_column import WeightColumn
from confide.tables.what import What

Histograms = Mapping[Any, ScoreHistogram]
"""By the name of a group; without groups the name is None."""


@dataclass(frozen=True)
class Counting:
    """A pass over a table that counts, and what it needs; columns are looked up when it is made, rows when it runs.

    Parameters
    ----------
    table
        What is read.
    readings
        What is read of each record; one for each score.
    candidates
        The public candidates of each.
    group
        The column of each record's group, or None.
    people
        Bounds the records that count of each person, or None.
    skip_incomplete
        Whether records with missing values are left out, before a person's are bounded.
    weight
        The column of each record's public weight, of which sums are made instead of counts, or None.
    """

    table: Table
    readings: tuple[Reading, ...]
    candidates: tuple[Candidates, ...]
    group: NamedColumn | None = None
    people: People | None = None
    skip_incomplete: bool = False
    weight: WeightColumn | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        what: What,
        candidates: Candidates | None,
        group: NamedColumn | None = None,
        people: People | None = None,
        skip_incomplete: bool = False,
        weight: WeightColumn | None = None,
    ) -> "Counting":
        """Look up the columns of a table; default candidates suit the score."""
        if people is not None:
            for column in (people.person, *people.order):
                table.type_of(column)
        readings = what.readings(table)
        if candidates is None:
            chosen = tuple(what.kind.candidates() if len(readings) == 1 else one.kind.candidates() for one in readings)
        else:
            chosen = (candidates,) * len(readings)
        return cls(table, readings, chosen, group, people, skip_incomplete, weight)

    def run(self, progress: Progress = silent) -> list[Histograms]:
        """The histograms of each reading, by group.

        Raises
        ------
        InputError
            If rows have no usable score (how many, and why).
        EngineError
            If the engine fails.
        """
        table = self.table.complete(self._reads()) if self.skip_incomplete else self.table
        table = table if self.people is None else table.limited(self.people)
        for reading in self.readings:
            if isinstance(reading, ClassReading) and reading.in_sql and (reading.by_entry or not table.local):
                refuse_first_rows(self.table, reading.probabilities)
        jobs = [
            Job(reading, self.group, chosen.edges, FLAG in table.columns, self.weight)
            for reading, chosen in zip(self.readings, self.candidates, strict=True)
        ]
        counted = [table.count(job, progress) for job in jobs]
        if any(one is None for one in counted):
            counted = count_rows(table, jobs, progress)
        names = (None,) if self.group is None else self.group.names
        found: list[Histograms] = []
        for (counts, findings), reading, chosen in zip(counted, self.readings, self.candidates, strict=True):
            findings.refuse(self._requirements(reading), table.rows, skips=not self.skip_incomplete)
            found.append({name: ScoreHistogram(chosen, counts[place]) for place, name in enumerate(names)})
        return found

    def _reads(self) -> list[Read]:
        """Every column that a record must have a value in, to be complete."""
        reads = [read for reading in self.readings for read in reading.reads]
        reads += [one.read for one in (self.group, self.weight) if one is not None]
        if self.people is not None:
            reads += [Read(column, "value") for column in (self.people.person, *self.people.order)]
        return reads

    def _requirements(self, reading: Reading) -> list[str]:
        own = [one.requirement for one in (self.group, self.weight) if one is not None]
        return [*reading.requirements, *own, *(() if self.people is None else self.people.requirements)]


def score_histogram(
    source: Any,
    what: What,
    candidates: Candidates | None = None,
    *,
    people: People | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> ScoreHistogram:
    """The counts of a table's scores over public candidates. **Private**, like every histogram.

    Parameters
    ----------
    source
        Whatever `open_table` opens, or what it gave.
    what
        The columns: `Scored`, `Classified`, `Regressed` or `Losses`.
    candidates
        Public candidate thresholds; by default the score's list for any number of records, as in `score_batches`.
    people
        Bounds the records that count of each person.
    skip_incomplete
        Leave out records in which a value that is read is missing, instead of refusing them; the statement about
        privacy stays (`complete.py` has the rule and the proof). How many, `left_out()` of an open table tells.
    progress
        Told the number of rows of every batch; its method `share`, if it has one, is told the tasks of Spark that are
        done, and all that are known.

    Raises
    ------
    InputError
        If rows have no usable score (how many, and why), or if columns do not fit. A table without rows has no counts.
    EngineError
        If the engine fails.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import Scored
    >>> score_histogram(pyarrow.table({"s": [0.1, 0.5, 0.6]}), Scored("s"), Candidates.of([0.5, 1.0])).counts
    array([2, 1, 0])
    """
    with opened(source) as table:
        counting = Counting.of(table, what, candidates, people=people, skip_incomplete=skip_incomplete)
        if len(counting.readings) != 1:
            raise InputError("score must be one of cqr, cqr_low and cqr_high to be counted; cqr_sides stands for two")
        return counting.run(progress)[0][None]


def group_histograms(
    source: Any,
    what: What,
    group: str,
    names: Sequence[str | int],
    candidates: Candidates | None = None,
    *,
    people: People | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> dict[str | int, ScoreHistogram]:
    """One histogram per group, in the same pass.

    Parameters
    ----------
    group
        The column of each row's group, texts or integers.
    names
        All groups there are, public. Rows of another group are refused.
    source, what, candidates, people, skip_incomplete, progress
        As in `score_histogram`.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import Scored
    >>> table = pyarrow.table({"s": [0.1, 0.5, 0.6], "g": ["a", "b", "a"]})
    >>> {name: h.total for name, h in group_histograms(table, Scored("s"), "g", ["a", "b", "c"]).items()}
    {'a': 2, 'b': 1, 'c': 0}
    """
    with opened(source) as table:
        column = group_column(table, group, tuple(names))
        counting = Counting.of(table, what, candidates, column, people, skip_incomplete)
        return dict(counting.run(progress)[0])
