"""A release renewed on a table of new records, wherever it lives."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from confide.calibration import PricedRelease, Renewal, weighted_sum
from confide.candidates import Candidates
from confide.errors import InputError
from confide.planning import ClassShift, RecordWeights
from confide.releases import Release
from confide.support import canonical
from confide.tables.calibrate import Asked, Counted, Counts, group_of, shifted_classes
from confide.tables.counts import Counting
from confide.tables.named_column import NamedColumn
from confide.tables.open_table import opened
from confide.tables.people import People
from confide.tables.predictors import names_in
from confide.tables.progress import Progress, silent
from confide.tables.table import Table
from confide.tables.weight_column import WeightColumn
from confide.tables.what import Classified, Losses, Regressed, Scored, What, stated_outputs


def recalibrate_table(
    previous: Release,
    source: Any,
    what: What,
    *,
    by: str | None = None,
    weights: str | None = None,
    n: int | None = None,
    people: People | None = None,
    skip_incomplete: bool = False,
    about: Mapping[str, str] | None = None,
    ledger: Any = None,
    dataset: Any = None,
    partition: str | None = None,
    again: bool = False,
    progress: Progress = silent,
    **options: Any,
) -> Any:
    """Renew a release on a table; the statement is that of `recalibrate` on the same scores.

    Parameters
    ----------
    previous
        As in `recalibrate`.
    source, n, people, skip_incomplete, progress
        As in `calibrate_table`. With `people`, as many records of each count as in `previous`.
    what
        The columns; the score is that of `previous`, as are the loss and its bound.
    by
        For a release with groups: the column of each record's group. For one with classes, where the label is no
        column of `what`: that of the true class. Likewise for one with class weights.
    weights
        For a release whose records have weights: the column of each record's.
    about, ledger, dataset, partition, again, **options
        As in `recalibrate`: `epsilon`, `rho`, `n_typical`, `cold`, `candidates`.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        Of the kind of `previous`.

    Raises
    ------
    InputError, EngineError, OtherDataError, BudgetError, LedgerError
        As `calibrate_table` and `recalibrate`.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> january = confide.calibrate(rng.beta(2, 5, 1000), 0.1, 1.0, score="lac")
    >>> february = recalibrate_table(january, pyarrow.table({"s": rng.beta(2, 5, 1000)}), Scored("s"))
    >>> february.score, february.predecessors[0].threshold == january.threshold
    ('lac', True)
    """
    renewal = Renewal.of(previous, **options)
    if people is not None and people.most != renewal.records_per_person:
        raise InputError(
            f"people must bound the records of each person by {renewal.records_per_person}, as in previous; found "
            f"{people.most}"
        )
    what = _of_the_release(what, renewal)
    with opened(source) as table:
        population = renewal.population
        if (weights is not None) != isinstance(population, RecordWeights):
            raise InputError(
                "weights, the column, must be given for a release whose records have weights, and only then"
            )
        if isinstance(population, ClassShift):
            group: NamedColumn | None = shifted_classes(table, what, by, population)
        else:
            group = _group(table, what, previous, by)
        weight = WeightColumn.of(table, weights, population) if isinstance(population, RecordWeights) else None
        if isinstance(what, Classified | Losses) and what.probabilities is not None:
            names_in(previous, *what.columns(table))
        payer = dataset if people is None else people.payer(dataset)
        account = {"ledger": ledger, "dataset": payer, "partition": partition, "again": again}

        def price(n: int | None, counting: Counting) -> PricedRelease:
            return renewal.price(n, about=stated_outputs(what, about), **account)

        def own(counted: Counted, n: int | None) -> Counted:
            if isinstance(population, ClassShift):
                counted = {None: weighted_sum(dict(counted), population)}
            found = {_text(name): one for name, one in counted.items()}
            lists = renewal.candidates(n)
            return {name: found[_text(of)].over(lists[name]) for name, of in renewal.counted.items()}

        counts = Counts(table, what, group, people, skip_incomplete, progress, weight)
        asked = Asked(renewal.counted_over, price, own)
        return asked.release(counts, n, public=renewal.public_n, paid=ledger is not None)


def _of_the_release(what: What, renewal: Renewal) -> What:
    """The same columns, for the score of the release; refused if they give another."""
    scores: Sequence[str | None] = [part.score for part in renewal.parts.values()]
    if isinstance(what, Scored) and what.score is None:
        what = replace(what, score=scores[0])
    if isinstance(what, Losses) and what.losses is not None:
        what = what.over(_listed(renewal))
    given = [kind.name for kind in what.kinds] if isinstance(what, Regressed) else [what.kind.name]
    if set(given) != set(scores):
        raise InputError(f"what must give the score {scores[0]!r}, as in previous; it gives {given[0]!r}")
    bounded = renewal.previous.bounded
    if isinstance(what, Losses) and bounded is not None and what.bound != bounded[1]:
        raise InputError(f"bound must be that of previous, {bounded[1]:g}; found {what.bound:g}")
    return what


def _listed(renewal: Renewal) -> Candidates | None:
    law = next(iter(renewal.laws.values()))
    return law if isinstance(law, Candidates) else None


def _group(table: Table, what: What, previous: Release, by: str | None) -> NamedColumn | None:
    """What thresholds depend on: the label, or a column with the names of the release; None for no groups."""
    if not previous.disjoint:
        if by is not None:
            raise InputError("by must be left out: previous has no thresholds per group of records")
        return None
    names = tuple(previous.parts)
    if by is not None:
        return group_of(table, what, by, names, by_class=False)
    if previous.by == "group":
        raise InputError("by must be given, the column of each record's group: previous has thresholds for each")
    column = group_of(table, what, None, None, by_class=True)
    assert column is not None
    if {_text(name) for name in column.names} != {_text(name) for name in names}:
        raise InputError(f"what must have the {len(names)} classes of previous; found others")
    return column


def _text(name: Any) -> str | None:
    """One text for a name, however a table holds it; None for all records."""
    return None if name is None else canonical(str(name))
