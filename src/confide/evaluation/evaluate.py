"""Evaluate a release on labelled records: `evaluate_sets`, `evaluate_intervals`, `evaluate_scores`; and privately.

The order of a private evaluation is that of every release (`confide.ledger.pay`). Exact counts are secret; only
`Tally.draw` returns numbers, which have noise.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import (
    Groups,
    Uniforms,
    as_array,
    as_labels,
    as_vector,
    class_columns,
    refuse_other_rows,
    warn_of_unknown_labels,
)
from confide.core import Release, as_release, names_for
from confide.errors import CoverageWarning, InputError
from confide.evaluation.consistency import MOST_EXAMPLES
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.files import query_fields
from confide.evaluation.partition import Partition, class_parts, group_parts, size_parts, width_parts
from confide.evaluation.parts import CONFIDENCE
from confide.evaluation.query import CountQuery, statements_of
from confide.evaluation.tally import MOST_GROUPS, IntervalOutcomes, RecordComparison, ScoreOutcomes, SetOutcomes, Tally
from confide.mechanisms import Neighbors
from confide.scores import refuse_infinite
from confide.support import Level, caller_stacklevel, exact_level, log_event, raise_for_rows, several

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment


def evaluate_sets(
    release: Release,
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    groups: Groups | None = None,
    u: Uniforms = None,
    examples: int = 0,
) -> Evaluation:
    """Evaluate the sets that a release gives for labelled records; not private.

    Parameters
    ----------
    release
        Release of a classification score. If it has several levels, each is evaluated. Groups or classes may have
        their own thresholds.
    probabilities, classes, u
        As in `predict_set`; shape (n, K).
    labels
        True classes, shape (n,): integers in [0, K), or class names if the columns have names from `classes`, a data
        frame or the release. A label that is not among the classes counts as not covered; a warning states how many.
    groups
        Group of each record, shape (n,). Required for thresholds per group; if groups overlap, a data frame or a
        mapping of their columns. With any other release, coverage is also reported by group.
    examples
        Number of records to store as examples, 0 to 1000; the first ones are used.

    Raises
    ------
    InputError, InputTypeError
        If the release does not give sets, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4, 2, 1], size=5000)
    >>> labels = (p.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> released = confide.calibrate(confide.lac_score(p, labels), [0.2, 0.1], epsilon=1.0, score="lac")
    >>> found = evaluate_sets(released, p, labels)
    >>> 0.88 < found[0.1].coverage.value < 0.93, found[0.2].mean_size < found[0.1].mean_size
    (True, True)
    """
    arrays = {"probabilities": probabilities, "labels": labels}
    return evaluate_arrays(release, None, arrays, groups, examples=examples, classes=classes, u=u)


def evaluate_intervals(
    release: Release,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    groups: Groups | None = None,
    difficulty: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate the intervals that a release gives for records with known targets; not private.

    Parameters
    ----------
    release
        Release of a regression score. If it has several levels, each is evaluated.
    predictions, difficulty
        As in `predict_interval`: shape (n,), or (n, 2) for quantiles.
    targets
        True values, finite, shape (n,).
    groups
        Group of each record, shape (n,). Required for thresholds per group; else coverage is also reported by group.

    Raises
    ------
    InputError, InputTypeError
        If the release does not give intervals, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> y = np.random.default_rng(0).normal(size=4000)
    >>> quantiles = np.tile([-1.0, 1.0], (4000, 1))
    >>> found = evaluate_intervals(confide.calibrate_sides(quantiles, y, 0.1, 1.0), quantiles, y)
    >>> found.ends.names, 0.88 < found.coverage.value < 0.94
    (('lower end', 'upper end'), True)
    """
    arrays = {"predictions": predictions, "targets": targets}
    return evaluate_arrays(release, None, arrays, groups, difficulty=difficulty)


def evaluate_scores(release: Release, scores: ArrayLike, *, groups: Groups | None = None) -> Evaluation:
    """Evaluate the nonconformity scores of true labels; not private. Scores up to the threshold are covered.

    For risk control the scores are critical thresholds (`false_negative_thresholds`, `critical_thresholds`). The share
    beyond the released threshold, times the bound of the loss, is an unbiased estimate of the loss.

    Parameters
    ----------
    release
        Any release except one with thresholds per side. If it has several levels, each is evaluated.
    scores
        Scores of labelled records, shape (n,).
    groups
        For thresholds per group or class: group or true class of each record, shape (n,). With any other release,
        coverage is also reported by group.

    Raises
    ------
    InputError, InputTypeError
        If a score is NaN, or an argument does not fit the release.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> released = confide.calibrate(scores, 0.1, 1.0, groups=ward, names=["a", "b"])
    >>> [0.88 < part.value < 0.94 for part in evaluate_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    return evaluate_arrays(release, None, {"scores": scores}, groups)


class ArrayOptions(TypedDict, total=False):
    """Further arguments of calls that evaluate arrays; `evaluate_sets` and the related functions describe them."""

    classes: Sequence[object] | None
    u: Uniforms
    difficulty: ArrayLike | None


def _compared(
    release: Release, arrays: dict[str, Any], groups: Groups | None, options: ArrayOptions, *, empty: bool
) -> tuple[RecordComparison, tuple[Any, ...]]:
    """The comparison for arrays, and the checked records; without records only if `empty` is true."""
    as_release(release)
    refuse_other_rows(**arrays, groups=groups, u=options.get("u"), difficulty=options.get("difficulty"))

    # Probabilities: a label that is not among the classes has the position -1, and no set covers it.
    if "probabilities" in arrays:
        p, named = class_columns(arrays["probabilities"], options.pop("classes", None))
        n, k = p.shape
        names = names_for(release, named, k)
        y = as_labels("labels", arrays["labels"], n, k, names, unknown=True)
        if not n and not empty:
            raise InputError("probabilities", "must have at least one row", got="none")
        columns: Sequence[object] = range(k) if names is None else names
        if not empty:
            warn_of_unknown_labels("labels", y, columns)
        return SetOutcomes(release, columns), (p, y)

    # Predictions.
    if "predictions" in arrays:
        intervals = IntervalOutcomes(release)
        targets = as_vector("targets", arrays["targets"], empty=empty)
        refuse_infinite("targets", targets)
        return intervals, (as_array("predictions", arrays["predictions"]), targets)

    # Scores.
    scores = as_vector("scores", arrays["scores"], empty=empty)
    raise_for_rows("scores", np.isnan(scores), "must not be NaN", "that are")
    return ScoreOutcomes(release), (scores,)


# With noise.

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
        if isinstance(self.parts, str) or (unknown := [name for name in self.parts or () if name not in PARTS]):
            got = "str" if isinstance(self.parts, str) else repr(unknown[0])
            raise InputError("parts", f"must be a list of {', '.join(map(repr, PARTS))}, or empty", got=got)
        for name in ("parts", "group_names", "width_bins"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, tuple(several(name, values)))

    def query(self, comparison: RecordComparison) -> CountQuery:
        """Return the checked query about a release; a number of records that is public but not given is 1."""
        # What may be given.
        release, classes = comparison.release, comparison.classes
        if self.n is not None and self.neighbors != "replace_one":
            raise InputError("n", "must be left out with neighbors='add_remove', because it is secret")
        if comparison.needs_groups and self.group_names is not None:
            raise InputError("group_names", f"must be left out, because the release names each {release.by}")
        one_level = isinstance(comparison, IntervalOutcomes) and release.by != "level"
        if self.width_bins is not None and not one_level:
            must = "must be left out unless intervals of a release with one level are evaluated"
            raise InputError("width_bins", must)

        # Parts with thresholds of their own are always counted; the others are public lists.
        wanted = self._wanted(comparison)
        sizes = [size_parts(len(classes))] if "size" in wanted else []
        groups = [] if self.group_names is None else [group_parts(self.group_names)]
        widths = [] if self.width_bins is None else [width_parts(self.width_bins)]
        lists = *_by_class(comparison, wanted="class" in wanted), *sizes, *_own_groups(comparison), *groups, *widths

        # Its privacy, and intervals that exist at this confidence.
        n = (self.n or 1) if self.neighbors == "replace_one" else None
        adjacency = {"neighbors": self.neighbors, "records_per_person": self.records_per_person, "n": n}
        query = CountQuery.of(release, lists, epsilon=self.epsilon, **adjacency)
        query.family_error(1 - float(exact_level("confidence", self.confidence)))
        return query

    def _wanted(self, comparison: RecordComparison) -> Sequence[str]:
        levels = comparison.release.by == "level"
        if self.parts and not isinstance(comparison, SetOutcomes):
            raise InputError("parts", "must be left out unless sets of a classification score are evaluated")
        if levels and "size" in (self.parts or ()):
            requirement = "must not contain 'size' for several levels, each of which has sets of its own"
            raise InputError("parts", requirement, remedy="Evaluate one level")
        if self.parts is not None or not isinstance(comparison, SetOutcomes):
            return self.parts or ()
        return ("class",) if levels else PARTS


def exact_query(comparison: RecordComparison, *, grouped: bool) -> CountQuery:
    """Query without noise: by class, by single set sizes at every level, and by group.

    Groups without thresholds of their own take their names from the records; at most 1000 are allowed.
    """
    partitions, classes = [*_by_class(comparison, wanted=True)], comparison.classes
    if isinstance(comparison, SetOutcomes):
        names = statements_of(comparison.release)[1] if comparison.release.by == "level" else [""]
        partitions += [size_parts(len(classes), exact=True, statement=name) for name in names]
    partitions += _own_groups(comparison)
    if grouped and not comparison.needs_groups:
        partitions.append(Partition("group", tuple(map(str, range(MOST_GROUPS)))))
    return CountQuery.of(comparison.release, partitions, measure=comparison.measure)


def _by_class(comparison: RecordComparison, *, wanted: bool) -> list[Partition]:
    release, classes = comparison.release, comparison.classes
    if release.by == "class":
        keys = comparison.keys
        return [class_parts(classes or keys, [release.parts[key].coverage for key in keys])]
    return [class_parts(classes)] if classes and wanted else []


def _own_groups(comparison: RecordComparison) -> list[Partition]:
    """Partitions by the groups that have thresholds of their own; several if groups overlap."""
    release = comparison.release
    if release.by != "group":
        return []
    names, promised = list(map(str, release.parts)), [threshold.coverage for threshold in release.parts.values()]
    pieces = [slice(None)] if release.overlap is None else release.overlap.slices
    return [group_parts(names[piece], promised[piece]) for piece in pieces]


def answer(
    request: PrivateRequest,
    comparison: RecordComparison,
    count: Callable[[Callable[..., None]], None],
    *,
    charge_first: bool = False,
) -> Evaluation:
    """Answer a request for a private evaluation; `count` passes all records to its argument, which is `Tally.add`.

    `charge_first` charges before the records are read, because a database engine reads them.
    """
    # Prepare, and check the limit.
    query, confidence = request.query(comparison), float(exact_level("confidence", request.confidence))
    _payment(request, query)  # an account with secret n raises for every n
    _point_out(request)

    def read() -> Tally:
        tally = Tally(comparison, query)
        count(tally.add)
        if request.n is not None and tally.total != request.n:
            raise InputError("n", f"must be the number of counted records, {tally.total}", got=str(request.n))
        return tally

    # Count a public number of records, which is part of the query.
    counted = None
    if request.neighbors == "replace_one" and request.n is None:
        if charge_first and request.ledger is not None:
            requirement = "must be given with neighbors='replace_one' and a ledger, which is charged before the count"
            raise InputError("n", requirement)
        counted = read()
        if not counted.total:
            raise InputError("n", "must be at least 1 with neighbors='replace_one'", got="no records")
        query = replace(query, n=counted.total)

    # Write what may be drawn at most; then read, compare, charge, draw and store.
    payment, longest = _payment(request, query), _compact(Evaluation.longest_of(query, confidence))
    log_event("evaluation", "evaluating privately", epsilon=query.epsilon, neighbors=query.neighbors)
    look = read if counted is None else lambda: counted
    if payment is None:
        return look().draw(query, confidence)
    from confide.ledger import check_stored, pay

    check_stored("parts", len(longest), "Use parts=()")
    drawn = pay(
        payment,
        look,
        Tally.content,
        lambda tally: _compact(tally.draw(query, confidence)),
        charge_first=charge_first,
    )
    return replace(Evaluation.from_json(drawn), confidence=confidence, release=comparison.release)


def _compact(evaluation: Evaluation) -> str:
    return json.dumps(json.loads(evaluation.to_json()), separators=(",", ":"))


def _payment(request: PrivateRequest, query: CountQuery) -> "Payment | None":
    if request.ledger is None and request.dataset is None:
        if request.again:
            raise InputError("again", "must be left out without a ledger, which alone stores earlier releases")
        return None
    from confide.ledger import make_payment

    content = {"private evaluation": query_fields(query)}
    return make_payment(query.privacy, _MECHANISM, content, request.ledger, request.dataset, again=request.again)


def _point_out(request: PrivateRequest) -> None:
    """Warn if records may not be as the intervals assume: independent of each other and of the calibration."""
    texts = []
    if request.records_per_person > 1:
        texts.append(
            f"records_per_person is {request.records_per_person}: the privacy guarantee holds, but the intervals "
            "assume independent records, and those of one person may be dependent. Keep one record of each person"
        )
    if request.ledger is not None and request.dataset is not None:
        from confide.ledger import as_dataset

        balance = request.ledger.balance(as_dataset(request.dataset).name)
        if balance is not None and "calibration" in balance.totals.kinds:
            texts.append(
                f"dataset {balance.dataset!r} has a calibration in the ledger. If the threshold was calibrated on "
                "these records, it covers them better than new ones, and the intervals do not hold: evaluate other "
                "records"
            )
    for text in texts:
        warnings.warn(text, CoverageWarning, stacklevel=caller_stacklevel())


_TRUTHS = {"probabilities": "labels", "predictions": "targets", "scores": None}


def evaluate_arrays(
    release: Release,
    request: PrivateRequest | None,
    arrays: dict[str, Any],
    groups: Groups | None,
    *,
    examples: int = 0,
    **options: Unpack[ArrayOptions],
) -> Evaluation:
    """Evaluate a release on the arrays of `evaluate_sets`, `evaluate_intervals` or `evaluate_scores`, by their names.

    With a request the evaluation is private, and stores no examples.
    """
    # Arrays that belong together.
    given = [name for name in _TRUTHS if name in arrays]
    if len(given) != 1 or set(arrays) - {given[0], _TRUTHS[given[0]]}:
        requirement = "must be given with labels, or predictions with targets, or scores alone"
        raise InputError("probabilities", requirement, got=", ".join(arrays) or "none of them")
    truth = _TRUTHS[given[0]]
    if truth is not None and truth not in arrays:
        raise InputError(truth, f"must be given with {given[0]}, as the true value of each record")
    if not 0 <= examples <= MOST_EXAMPLES:
        raise InputError("examples", f"must be from 0 to {MOST_EXAMPLES}", got=str(examples))
    if request is not None and examples:
        raise InputError("examples", "must be left out with epsilon, because single records cannot be private")

    # Count them without noise, or answer the request.
    comparison, records = _compared(release, arrays, groups, options, empty=request is not None)
    if request is None:
        tally = Tally(comparison, exact_query(comparison, grouped=groups is not None), examples)
        tally.add(*records, groups=groups, **options)
        return tally.result()
    if (groups is not None) != (comparison.needs_groups or request.group_names is not None):
        requirement = "must be given if and only if group_names, their public list, is given"
        raise InputError("groups", requirement)
    return answer(request, comparison, lambda add: add(*records, groups=groups, **options))
