"""Private evaluation of labelled records: count, charge, draw and store.

Records are counted as in any evaluation. Exact counts are secret; only `draw` returns numbers, which have noise.

The order is that of every release (`confide.ledger.pay`). Check the limit of the ledger, compare the
request with stored answers, charge, draw, store.

`evaluate_arrays` evaluates labelled records in arrays, privately or not. The names of the arrays choose the kind.
"""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_array, refuse_other_rows
from confide.core import Release
from confide.errors import CoverageWarning, InputError
from confide.evaluation.count_query import SIDES, CountQuery, Outcome, level_name, query_fields
from confide.evaluation.counts import Counts, RecordOutcomes, group_names, outcomes_of
from confide.evaluation.evaluate import (
    IntervalTally,
    ScoreTally,
    SetTally,
    Tally,
    checked_scores,
    checked_targets,
    class_keys,
    division_of,
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    fingerprint,
    labelled_sets,
)
from confide.evaluation.intervals import (
    Partition,
    arrangement,
    class_parts,
    family_error,
    group_parts,
    size_parts,
    width_parts,
)
from confide.evaluation.parts import CONFIDENCE
from confide.evaluation.private_evaluation import PrivateEvaluation, empty
from confide.evaluation.values import Evaluation, LevelEvaluation
from confide.mechanisms import Neighbors
from confide.noisy_counts import draw_counts
from confide.support import Level, caller_stacklevel, canonical_name, exact_level, library_versions, log_event, several

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment


class CellTally:
    """Exact counts of the cells of a query.

    Parameters
    ----------
    tally
        Tally that gives coverage and set sizes or interval widths of records.
    query
        The cells to count; its `n` is not used.
    """

    def __init__(self, tally: Tally, query: CountQuery) -> None:
        self._tally, self._question = tally, query
        shapes = [query.shape(table) for table in query.tables]
        self._tables = [Counts(parts, outcomes) for *parts, outcomes in shapes]

    def add(
        self, *arrays: Any, groups: Groups | None = None, places: NDArray[np.int64] | None = None, **more: Any
    ) -> None:
        """Count records.

        Parameters
        ----------
        *arrays, **more
            Arguments of the tally's `record_outcomes`.
        groups
            Names of the groups or classes of the records, if these have their own thresholds.
        places
            Positions of the groups in the public list, shape (n,); -1 for a group that is not in the list. If groups
            overlap: their positions among the groups of all columns, shape (n, columns).
        """
        record_outcomes = self._tally.record_outcomes(*arrays, groups, **more)
        classes = arrays[1] if isinstance(self._tally, SetTally) else places
        columns = iter(_by_column(places, self._question.partitions))
        axes = [
            _axis(partition, record_outcomes[0], classes, next(columns) if partition.kind == "group" else None)
            for partition in self._question.partitions
        ]
        outcome = outcomes_of(record_outcomes)
        for table, counts in zip(self._question.tables, self._tables, strict=True):
            counts.add([axes[place] for place in table], outcome)

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self._tables[0].cells.sum())

    def content(self) -> bytes:
        """All counts as bytes, which are the same for the same data on every machine and engine."""
        return b"".join(counts.cells.astype("<i8").tobytes() for counts in self._tables)

    def draw(self, query: CountQuery, confidence: float) -> PrivateEvaluation:
        """Draw the private evaluation with fresh noise; `query` is the counted one, with `n` if it is public."""
        cells = [counts.cells.ravel() for counts in self._tables]
        exact = [cells[0][:1]] if query.one_count else cells
        noisy = tuple(tuple(draw_counts(counts, query.noise).tolist()) for counts in exact)
        return PrivateEvaluation(query, confidence, noisy, library_versions())


def _by_column(places: NDArray[np.int64] | None, partitions: Sequence[Partition]) -> list[NDArray[np.int64] | None]:
    """Positions of the groups in each partition of kind group, which are several if groups overlap."""
    if places is None or places.ndim == 1:
        return [places]
    sizes = [len(partition) for partition in partitions if partition.kind == "group"]
    return [column - start for column, start in zip(places.T, np.cumsum([0, *sizes[:-1]]), strict=True)]


def _axis(
    partition: Partition, look: RecordOutcomes, classes: NDArray[np.int64] | None, groups: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Part of each record."""
    if partition.binned:
        assert look.size is not None
        place = np.searchsorted(np.array(partition.edges), look.size, side="right") - 1
        return np.maximum(place, 0)  # an interval whose ends are crossed has no width
    positions = classes if partition.kind == "class" else groups
    if positions is None:
        raise InputError("groups", f"must be given to evaluate coverage by {partition.kind}")
    return np.where(positions < 0, len(partition) - 1, positions)


_LONGEST_NUMBER = len("-2.2250738585072014e-308")
_MECHANISM = "evaluation by discrete-laplace"

PARTS = ("class", "size")
"""Divisions of sets by which coverage can be requested, in addition to coverage over all records and by group."""


@dataclass(frozen=True)
class PrivateRequest:
    """Request for a private evaluation of a release; all of it is public.

    Parameters
    ----------
    epsilon
        Privacy loss for each person.
    neighbors
        Adjacency: `"add_remove"` keeps the number of records secret, `"replace_one"` makes it public.
    records_per_person
        Maximum number of records of one person.
    confidence
        Probability that all intervals hold at once.
    n
        Number of records, only with `replace_one`; counted by default.
    parts
        For sets: divisions by which coverage is reported, from `"class"` and `"size"`. The default is both; `()` is
        coverage over all records only. Parts with their own thresholds are always reported.
    group_names
        All groups, a public list that is not taken from the records. Records of other groups are counted in the part
        `"(other)"`.
    width_bins
        For intervals: public numbers between which widths are counted.
    ledger, dataset, again
        As in `confide.calibrate`.
    """

    epsilon: float
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1
    confidence: Level = CONFIDENCE
    n: int | None = None
    parts: Sequence[str] | None = None
    group_names: Sequence[str | int] | None = None
    width_bins: Sequence[float] | None = None
    ledger: "Ledger | None" = None
    dataset: "str | Dataset | None" = None
    again: bool = False

    def __post_init__(self) -> None:
        for name in ("parts", "group_names", "width_bins"):
            values = getattr(self, name)
            if values is not None and not isinstance(values, str):
                object.__setattr__(self, name, tuple(several(name, values)))

    def query(self, release: Release, tally: Tally, n: int | None) -> CountQuery:
        """Return the checked query about a release; `n` is used if it is public."""
        if self.n is not None and self.neighbors != "replace_one":
            raise InputError("n", "must be left out with neighbors='add_remove', because it is secret")
        partitions = _partitions(self, release, tally)
        outcome, statements = private_statements(release)
        query = CountQuery(
            calibration=fingerprint(release),
            neighbors=self.neighbors,
            epsilon=self.epsilon,
            records_per_person=self.records_per_person,
            n=n if self.neighbors == "replace_one" else None,
            outcome=outcome,
            statements=statements,
            partitions=partitions,
            tables=arrangement([len(partition) for partition in partitions]),
            loss=release.bounded,
        )
        family_error(partitions, len(statements), 1 - float(exact_level("confidence", self.confidence)))
        return query


def answer(
    request: PrivateRequest,
    release: Release,
    tally: Tally,
    count: Callable[[Callable[..., None]], None],
    *,
    charge_first: bool = False,
) -> PrivateEvaluation:
    """Answer a request for a private evaluation: count, charge and draw.

    Parameters
    ----------
    request, release
        The request, and the release to evaluate.
    tally
        Tally that gives the coverage of records.
    count
        Function that passes all records to its argument, which is `CellTally.add`.
    charge_first
        Charge before the records are read, because a database engine reads them.
    """
    first = request.query(release, tally, request.n or 1)
    _payment(request, first)  # an account with secret n raises for every n
    confidence = float(exact_level("confidence", request.confidence))

    def counted() -> CellTally:
        cells = CellTally(tally, first)
        count(cells.add)
        if request.n is not None and cells.total != request.n:
            raise InputError("n", f"must be the number of counted records, {cells.total}", got=str(request.n))
        return cells

    _point_out_same_people(request)
    _point_out_many_of_one_person(request)
    exact = None
    if request.neighbors == "replace_one" and request.n is None:
        if charge_first and request.ledger is not None:
            requirement = "must be given with neighbors='replace_one' and a ledger, which is charged before the count"
            raise InputError("n", requirement)
        exact = counted()
        if not exact.total:
            raise InputError("n", "must be at least 1 with neighbors='replace_one'", got="no records")
    query = first if exact is None else request.query(release, tally, exact.total)
    payment = _payment(request, query)
    log_event("evaluation", "evaluating privately", epsilon=query.epsilon, neighbors=query.neighbors)
    _refuse_unwritable(query, confidence, kept=payment is not None)
    look = counted if exact is None else lambda: exact
    if payment is None:
        return look().draw(query, confidence).with_shortfall(release)
    from confide.ledger import pay

    text = pay(
        payment,
        look,
        CellTally.content,
        lambda cells: _compact(cells.draw(query, confidence)),
        charge_first=charge_first,
    )
    return replace(PrivateEvaluation.from_json(text), confidence=confidence).with_shortfall(release)


def _compact(evaluation: PrivateEvaluation) -> str:
    """Text that a ledger stores: that of the file, without blanks."""
    return json.dumps(json.loads(evaluation.to_json()), separators=(",", ":"))


def _refuse_unwritable(query: CountQuery, confidence: float, *, kept: bool) -> None:
    """Raise before a charge or a draw if the evaluation cannot be written, or is too long for its ledger.

    It is written with counts of 0. Each number may become as long as the longest one.
    """
    written = _compact(empty(query, confidence))
    if kept:
        from confide.ledger import check_stored

        numbers = len(re.findall(r"[\d.]+", written))
        check_stored("parts", len(written) + _LONGEST_NUMBER * numbers, "Use parts=()")


def _payment(request: PrivateRequest, query: CountQuery) -> "Payment | None":
    if request.ledger is None and request.dataset is None:
        if request.again:
            raise InputError("again", "must be left out without a ledger, which alone stores earlier releases")
        return None
    from confide.ledger import make_payment

    content = {"private evaluation": query_fields(query)}
    return make_payment(query.privacy, _MECHANISM, content, request.ledger, request.dataset, again=request.again)


def _point_out_same_people(request: PrivateRequest) -> None:
    """Warn if the data set was used for calibration, because evaluation records should be others."""
    if request.ledger is None or request.dataset is None:
        return
    from confide.ledger import Dataset, find_account

    name = request.dataset.name if isinstance(request.dataset, Dataset) else request.dataset
    account = find_account(request.ledger.accounts(), name)
    if account is not None and any(entry.kind == "calibration" for entry in account.entries):
        text = (
            f"dataset {account.dataset!r} has a calibration in the ledger. If the threshold was calibrated on these "
            "records, it covers them better than new ones, and the intervals do not hold: evaluate other records"
        )
        warnings.warn(text, CoverageWarning, stacklevel=caller_stacklevel())


def _point_out_many_of_one_person(request: PrivateRequest) -> None:
    """Warn if a person may have several records, which the intervals treat as independent."""
    if request.records_per_person > 1:
        text = (
            f"records_per_person is {request.records_per_person}: the privacy guarantee holds, but the intervals "
            "assume independent records, and those of one person may be dependent. Keep one record of each person"
        )
        warnings.warn(text, CoverageWarning, stacklevel=caller_stacklevel())


def private_statements(release: Release) -> tuple[Outcome, dict[str, float]]:
    """Outcome of a private evaluation of a release, and the promised coverage of each of its statements."""
    if release.by == "level":
        return "levels", {level_name(alpha): part.coverage for alpha, part in release.parts.items()}
    if release.by == "side":
        stated = release.promised, *(part.coverage for part in release.parts.values())
        return "sides", dict(zip(SIDES, stated, strict=True))
    return "covered", {"": release.promised}


def _partitions(request: PrivateRequest, release: Release, tally: Tally) -> tuple[Partition, ...]:
    several = release.by == "level"
    division = division_of(release)
    wanted = _wanted(request, tally, several)
    found: list[Partition] = []
    if isinstance(tally, SetTally):
        classes = tally.levels[0].classes
        own = None
        if division == "class":
            own = [release.parts[key].coverage for key in class_keys(release, classes)]
        if own is not None or "class" in wanted:
            found.append(class_parts(classes, own))
        if "size" in wanted:
            found.append(size_parts(len(classes)))
    if release.needs_groups(sets=isinstance(tally, SetTally)):
        if request.group_names is not None:
            raise InputError("group_names", f"must be left out, because the release names each {division}")
        promised = [part.coverage for part in release.parts.values()]
        names = list(map(str, release.parts))
        if division == "class":
            found.append(class_parts(names, promised))
        else:
            pieces = [slice(None)] if release.overlap is None else release.overlap.slices
            found += [group_parts(names[piece], promised[piece]) for piece in pieces]
    elif request.group_names is not None:
        found.append(group_parts(request.group_names))
    if request.width_bins is not None:
        if not isinstance(tally, IntervalTally) or several:
            raise InputError(
                "width_bins", "must be left out unless intervals of a release with one level are evaluated"
            )
        found.append(width_parts(request.width_bins))
    return tuple(found)


def _wanted(request: PrivateRequest, tally: Tally, several: bool) -> tuple[str, ...]:
    """Divisions of sets for which coverage is requested."""
    if not isinstance(tally, SetTally):
        if request.parts:
            raise InputError("parts", "must be left out unless sets of a classification score are evaluated")
        return ()
    if request.parts is None:
        return ("class",) if several else PARTS
    named = [request.parts] if isinstance(request.parts, str) else request.parts
    unknown = [name for name in named if name not in PARTS]
    if isinstance(request.parts, str) or unknown:
        found = "str" if not unknown else repr(unknown[0])
        raise InputError("parts", f"must be a list of {', '.join(map(repr, PARTS))}, or empty", got=found)
    if several and "size" in request.parts:
        raise InputError(
            "parts",
            "must not contain 'size' for several levels, each of which has sets of its own",
            remedy="Evaluate one level",
        )
    return tuple(request.parts)


_TRUTHS = {"probabilities": "labels", "predictions": "targets", "scores": None}


class ArrayOptions(TypedDict, total=False):
    """Further arguments of calls that evaluate arrays; `evaluate_sets` and the related functions describe them."""

    classes: Sequence[object]
    u: Uniforms
    difficulty: ArrayLike
    examples: int


def evaluate_arrays(
    release: Release,
    request: PrivateRequest | None,
    arrays: dict[str, Any],
    groups: Groups | None,
    **more: Unpack[ArrayOptions],
) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    """Evaluate a release on arrays, privately if there is a request.

    Parameters
    ----------
    release
        Any release.
    request
        The request for a private evaluation; None for numbers that are not private.
    arrays
        `probabilities` and `labels`, `predictions` and `targets`, or `scores`, as in `evaluate_sets`,
        `evaluate_intervals` and `evaluate_scores`.
    groups
        Group of each record.
    **more
        Further arguments of these functions: `classes`, `u`, `difficulty`, `examples`.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> evaluate_arrays(released, None, {"scores": [0.1, 0.99]}, None).coverage.value
    0.5
    """
    given = [name for name in _TRUTHS if name in arrays]
    if len(given) != 1 or set(arrays) - {given[0], _TRUTHS[given[0]]}:
        requirement = "must be given with labels, or predictions with targets, or scores alone"
        raise InputError("probabilities", requirement, got=", ".join(arrays) or "none of them")
    truth = _TRUTHS[given[0]]
    if truth is not None and truth not in arrays:
        raise InputError(truth, f"must be given with {given[0]}, as the true value of each record")
    refuse_other_rows(**arrays, groups=groups, u=more.get("u"), difficulty=more.get("difficulty"))
    if request is None:
        calls: dict[str, Callable[..., Any]] = {
            "probabilities": evaluate_sets, "predictions": evaluate_intervals, "scores": evaluate_scores,
        }  # fmt: skip
        found: Evaluation | LevelEvaluation = calls[given[0]](release, *arrays.values(), groups=groups, **more)
        return found
    if more.pop("examples", 0):
        raise InputError("examples", "must be left out with epsilon, because single records cannot be private")
    tally, records = _counted(release, arrays, more)
    n = len(records[0])
    own = release.needs_groups(sets=isinstance(tally, SetTally))
    if (groups is not None) != (own or request.group_names is not None):
        requirement = "must be given if and only if group_names, their public list, is given"
        raise InputError("groups", requirement)
    listed: Sequence[Any] = list(release.parts) if own else ()
    places = None
    if groups is not None and own and release.overlap is not None:
        places = release.places(groups, n)
    elif groups is not None:
        places = _places(groups, n, listed or request.group_names or ())

    def count(add: Callable[..., None]) -> None:
        add(*records, groups=groups if own else None, places=places, **more)  # `more` contains only u or difficulty

    return answer(request, release, tally, count)


def _counted(release: Release, arrays: dict[str, Any], more: ArrayOptions) -> tuple[Tally, tuple[Any, ...]]:
    """Tally for the arrays, and the checked records; there may be no records."""
    if "probabilities" in arrays:
        p, y, names = labelled_sets(release, arrays["probabilities"], arrays["labels"], more.pop("classes", None))
        return SetTally(release, names), (p, y)
    if "predictions" in arrays:
        predictions = as_array("predictions", arrays["predictions"])
        return IntervalTally(release), (predictions, checked_targets(arrays["targets"], empty=True))
    return ScoreTally(release), (checked_scores(arrays["scores"], empty=True),)


def _places(groups: Groups, n: int, names: Sequence[Any]) -> NDArray[np.int64]:
    """Position of each record's group in the public list; -1 for a group that is not in the list."""
    distinct, place = group_names(groups, n)  # type: ignore[arg-type]  # a mapping raises
    public = {canonical_name(name): i for i, name in enumerate(names)}
    return np.array([public.get(name, -1) for name in distinct], dtype=np.int64)[place]
