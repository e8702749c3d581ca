"""How often sets contain the truth, and how large they are, over a table: as it is, or privately."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from confide.errors import InputError
from confide.evaluation import (
    Asking,
    Evaluation,
    IntervalTally,
    LevelEvaluation,
    PrivateEvaluation,
    ScoreTally,
    SetTally,
    TooManyGroupsError,
    answer,
)
from confide.releases import Release
from confide.tables.labelled import Labelled
from confide.tables.named_column import AnyGroups, NamedColumn, group_column
from confide.tables.open_table import opened
from confide.tables.people import People
from confide.tables.predictors import names_in
from confide.tables.progress import Progress, silent
from confide.tables.readings import Reading
from confide.tables.table import Table
from confide.tables.what import Classified, Losses, Regressed, What


def evaluate_table(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    examples: int = 0,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> Evaluation | LevelEvaluation:
    """Measure coverage and set size on records with known truth; not private.

    Parameters
    ----------
    source
        Whatever `open_table` opens, or what it gave.
    what
        The columns, with label or target; a score is that of the release. `Scored` compares scores of the truth with
        the threshold; `Losses` compares critical thresholds, of which the share beyond it, times the bound, is the
        loss.
    release
        What is evaluated.
    by
        The column of each record's group. Needed for thresholds per group, and for `Scored` and thresholds per class,
        whose classes it names; for every other release a check: coverage is measured group by group.
    examples
        How many records to keep as they are, with sets and true labels; the first ones.
    skip_incomplete
        Leave out records in which a value that is read is missing, instead of refusing them; `left_out()` of an open
        table tells how many.

    Raises
    ------
    InputError
        If columns do not fit the release, or rows cannot be used: how many, and why.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> found = evaluate_table(pyarrow.table({"s": [0.1, 0.5, 0.99]}), Scored("s", "lac"), released)
    >>> round(found.coverage.value, 2)
    0.67
    """
    return tally_table(
        source,
        what,
        release,
        by=by,
        examples=examples,
        skip_incomplete=skip_incomplete,
        may_be_empty=False,
        progress=progress,
    ).result()


def tally_table(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    examples: int = 0,
    skip_incomplete: bool = False,
    may_be_empty: bool = True,
    progress: Progress = silent,
) -> SetTally | IntervalTally | ScoreTally:
    """What `evaluate_table` counts, of a table that `may_be_empty`: what is released of it with noise must not tell."""
    with opened(source) as table:
        reading, tally = _tally(table, what, release, examples)
        count: Callable[..., None] = tally.add
        groups = None if by is None else _group_column(table, by, release, what)
        labelled = Labelled(table, what, reading, groups, skip_incomplete=skip_incomplete)

        def add(arrays: list[Any], batch: Any) -> None:
            try:
                count(*arrays, None if groups is None else groups.keys(batch)[0])
            except TooManyGroupsError:
                raise TooManyGroupsError(f"column {by!r}") from None

        if not (labelled.run(add, progress) or may_be_empty):
            raise InputError(f"{table.name} must have rows; it is empty: it has column names but no rows")
        return tally


def evaluate_table_privately(
    source: Any,
    what: What,
    release: Release,
    asking: Asking,
    *,
    by: str | None = None,
    people: People | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> PrivateEvaluation:
    """The same with a differential-privacy guarantee: what is found may be published.

    Parameters
    ----------
    source, what, release, skip_incomplete, progress
        As in `evaluate_table`; a table may be empty where the number of records is secret.
    asking
        What is asked, and at which price.
    by
        The column of each record's group, which is one of `asking.group_names` or in none of these; of a release with
        thresholds per group, one of its groups.
    people
        Bounds the records that count of each person; epsilon is then stated per person.

    Raises
    ------
    InputError
        If an argument cannot be used, or rows cannot be used: then nothing was released. What was charged before an
        engine was asked stays charged.
    BudgetError, OtherDataError, LedgerError
        As in `confide.calibrate`.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.evaluation import Asking
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> table = pyarrow.table({"s": np.linspace(0, 1, 5000)})
    >>> found = evaluate_table_privately(table, Scored("s", "lac"), released, Asking(epsilon=1.0))
    >>> 0.85 < found.coverage.low < found.coverage.high < 0.95
    True
    """
    if people is not None:
        if asking.records_per_person not in (1, people.most):
            raise InputError("records_per_person must be left out with people, which bounds the records itself")
        asking = replace(asking, records_per_person=people.most, dataset=people.payer(asking.dataset))
    with opened(source) as table:
        reading, tally = _tally(table, what, release, 0)
        own = release.asks_groups(sets=isinstance(what, Classified))
        if (by is not None) != (own or asking.group_names is not None):
            raise InputError("by and group_names must be given together: a column, and the public list of its values")
        if people is not None:
            for column in (people.person, *people.order):
                table.type_of(column)
        names = tuple(release.parts) if own else asking.group_names
        group = None if by is None or names is None else group_column(table, by, tuple(names))
        labelled = Labelled(table, what, reading, group, not own, people, skip_incomplete)

        def count(add: Callable[..., None]) -> None:
            def handed(arrays: list[Any], batch: Any) -> None:
                keys = group.keys(batch)[0] if group is not None and own else None
                add(*arrays, groups=keys, places=None if group is None else group.places(batch))

            labelled.run(handed, progress)

        return answer(asking, release, tally, count, charge_first=not table.local)


def _tally(
    table: Table, what: What, release: Release, examples: int
) -> tuple[Reading, SetTally | IntervalTally | ScoreTally]:
    """What is read of each record, and what counts it."""
    if isinstance(what, Classified):
        (reading,) = replace(what, score="aps").readings(table)  # whichever score: all probabilities are read
        p, names = what.columns(table)
        names_in(release, p, names)
        return reading, SetTally(release, names, examples)
    reading = what.readings(table)[0]
    if isinstance(what, Losses) and what.probabilities is not None:
        names_in(release, *what.columns(table))
    if isinstance(what, Regressed):
        return reading, IntervalTally(release)
    if isinstance(what, Losses) and release.by != "loss":
        raise InputError("the release must be a bound on a loss, to be evaluated on losses")
    return reading, ScoreTally(release)


def _group_column(table: Table, by: str, release: Release, what: What) -> NamedColumn | AnyGroups:
    """The column that says to which group, or true class, of a release a record belongs; or to which group at all."""
    if release.asks_groups(sets=isinstance(what, Classified)):
        return group_column(table, by, tuple(release.parts))
    return AnyGroups.of(table, by)
