"""Calibrations from tables. The price is known without the data, so it is charged before the engine is asked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from confide.calibration.calibrate import calibrate_histogram, check_candidates
from confide.calibration.offers import check_number, group_offer, make_offer
from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms.privacy import Neighbors
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.support.rationals import Level
from confide.tables.counts import histograms, prepared
from confide.tables.people import People
from confide.tables.progress import Progress, silent
from confide.tables.what import Source

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


def calibrate_table(
    table: Any,
    source: Source,
    alpha: Level,
    epsilon: float | None = None,
    *,
    n: int | None = None,
    candidates: Candidates | None = None,
    people: People | None = None,
    neighbors: Neighbors = "add_remove",
    records_per_person: int | None = None,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    progress: Progress = silent,
    **options: Any,
) -> Calibration:
    """Release a threshold from a table, wherever it lives; the statement is that of `calibrate` on the same scores.

    Parameters
    ----------
    table, source, people, progress
        As in `score_histogram`. With `people`, epsilon is stated per person (docs/engines/README.md).
    n
        The public number of rows, under `replace_one` only; needed there with a ledger, because the price of a public
        number is charged before the engine is asked for it. A table with another number of rows is refused.
    alpha, epsilon, candidates, neighbors, records_per_person, ledger, dataset, **options
        As in `calibrate`; `records_per_person` follows from `people` if that is given.

    Raises
    ------
    InputError
        If an argument cannot be used or rows have no usable score; then nothing was released. What was charged before
        the engine was asked stays charged.
    EngineError
        If the engine fails; likewise.
    BudgetError, LedgerError
        If the ledger refuses; then the engine was not asked.

    Examples
    --------
    >>> import ibis, pyarrow, numpy as np
    >>> from confide.tables import Scored
    >>> table = ibis.memtable(pyarrow.table({"s": np.random.default_rng(0).random(2000)}))
    >>> released = calibrate_table(table, Scored("s", "lac"), alpha=0.1, epsilon=1.0)
    >>> print(released.privacy)
    1-differential privacy for adding or removing one record
    """
    chosen = source.kind.candidates() if candidates is None else check_candidates(candidates)
    name = source.kind.name
    options = {"neighbors": neighbors, "records_per_person": _owned(people, records_per_person), **options}

    rows = prepared(table, source, people=people)  # a column that does not exist costs nothing

    def count() -> ScoreHistogram:
        return histograms(rows, source, chosen, (None,), progress)[None]

    public = neighbors == "replace_one" or options.get("mechanism") == "none"
    if not public and n is not None:
        raise InputError("n must be left out: under neighbors='add_remove' the number of records is secret")
    if public and n is None:
        if ledger is not None:
            raise InputError("n must be given under neighbors='replace_one' with a ledger, to charge it beforehand")
        return calibrate_histogram(count(), alpha, epsilon, score=name, **options)
    promised = make_offer(alpha, epsilon, n, chosen, name, ledger=ledger, dataset=dataset, **options).accept()
    if isinstance(promised, Calibration):
        return promised
    histogram = count()
    check_number(histogram, n)
    return promised.finish(histogram)


def calibrate_table_groups(
    table: Any,
    source: Source,
    group: str,
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None = None,
    *,
    values: Sequence[str | int] | None = None,
    by: Literal["group", "class"] = "group",
    candidates: Candidates | None = None,
    people: People | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    records_per_person: int | None = None,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    partition: str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> GroupCalibration:
    """One threshold per group or class, from one pass over a table; every group is paid for before that pass.

    Parameters
    ----------
    group
        The column of each row's group; with `by="class"` the label.
    values
        What the column holds for each name, in their order, where that is not the name itself.
    table, source, people, progress
        As in `score_histogram`.
    names, alpha, epsilon, by, rho, neighbors, ledger, dataset, partition, **options
        As in `calibrate_groups`.

    Examples
    --------
    >>> import ibis, pyarrow, numpy as np
    >>> from confide.tables import Scored
    >>> rng = np.random.default_rng(0)
    >>> table = ibis.memtable(pyarrow.table({"s": rng.random(5000), "ward": rng.choice(["a", "b"], 5000)}))
    >>> released = calibrate_table_groups(table, Scored("s", "lac"), "ward", ["a", "b"], 0.1, 1.0)
    >>> released.privacy.epsilon, list(released.parts)
    (1.0, ['a', 'b'])
    """
    chosen = source.kind.candidates() if candidates is None else check_candidates(candidates)
    options = {"records_per_person": _owned(people, records_per_person), **options}
    accounts: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "partition": partition}
    offer = group_offer(
        names, alpha, epsilon, chosen, source.kind.name, by=by, rho=rho, neighbors=neighbors, **accounts, **options
    )
    held = list(offer.parts) if values is None else list(values)
    if len(held) != len(offer.parts):
        raise InputError(f"values must have one entry per name; found {len(held)} for {len(offer.parts)} names")
    rows = prepared(table, source, group, tuple(held), people)
    promised = offer.accept()
    if not promised.waits:
        return promised.finish({})
    counts = histograms(rows, source, chosen, tuple(held), progress)
    return promised.finish(dict(zip(offer.parts, counts.values(), strict=True)))


def _owned(people: People | None, records_per_person: int | None) -> int:
    if people is None:
        return 1 if records_per_person is None else records_per_person
    if records_per_person is not None and records_per_person != people.most:
        raise InputError("records_per_person must be left out with people, which bounds the records itself")
    return people.most
