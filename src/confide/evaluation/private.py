"""The private evaluation: `PrivateRequest`, the query that follows from it, and `answer`, which draws the result.

The order of a private evaluation is that of every release (`confide.ledger.pay`). Exact counts are secret. Only
`Tally.draw` returns numbers, which have noise.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from confide.errors import CoverageWarning, InputError
from confide.evaluation.comparison import IntervalOutcomes, RecordComparison, SetOutcomes
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.partitions import group_parts, size_parts, width_parts
from confide.evaluation.parts import CONFIDENCE
from confide.evaluation.query import CountQuery, json_fields
from confide.evaluation.tally import Tally
from confide.mechanisms import Neighbors
from confide.support import Level, caller_stacklevel, exact_level, log_event, require, several

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment

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
        must = f"must be a list of {', '.join(map(repr, PARTS))}, or empty"
        require("parts", not isinstance(self.parts, str), must, got="str")
        if unknown := [name for name in self.parts or () if name not in PARTS]:
            raise InputError("parts", must, got=repr(unknown[0]))
        for name in ("parts", "group_names", "width_bins"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, tuple(several(name, values)))

    def query(self, comparison: RecordComparison) -> CountQuery:
        """Return the checked query about a release; a number of records that is public but not given is 1."""
        self._check_fit(comparison)

        # Parts with thresholds of their own are always counted; the others are public lists.
        wanted = self._wanted(comparison)
        partitions = comparison.class_partitions(wanted="class" in wanted)
        if "size" in wanted:
            partitions.append(size_parts(len(comparison.classes)))
        partitions += comparison.group_partitions()
        if self.group_names is not None:
            partitions.append(group_parts(self.group_names))
        if self.width_bins is not None:
            partitions.append(width_parts(self.width_bins))

        # Its privacy, and intervals that exist at this confidence.
        n = self.n or 1 if self.neighbors == "replace_one" else None
        adjacency = {"neighbors": self.neighbors, "records_per_person": self.records_per_person, "n": n}
        query = CountQuery.of(comparison.release, partitions, epsilon=self.epsilon, **adjacency)
        query.family_error(1 - float(exact_level("confidence", self.confidence)))  # raises if there are none
        return query

    def _check_fit(self, comparison: RecordComparison) -> None:
        """Raise an error for fields that the adjacency or the release excludes."""
        release = comparison.release
        must = "must be left out with neighbors='add_remove', because it is secret"
        require("n", self.n is None or self.neighbors == "replace_one", must)
        must = f"must be left out, because the release names each {release.by}"
        require("group_names", self.group_names is None or not comparison.needs_groups, must)
        one_level = isinstance(comparison, IntervalOutcomes) and release.by != "level"
        must = "must be left out unless intervals of a release with one level are evaluated"
        require("width_bins", self.width_bins is None or one_level, must)

    def _wanted(self, comparison: RecordComparison) -> Sequence[str]:
        """Divisions of sets that are requested; by default all that the release allows."""
        if not isinstance(comparison, SetOutcomes):
            require("parts", not self.parts, "must be left out unless sets of a classification score are evaluated")
            return ()
        several_levels = comparison.release.by == "level"
        if self.parts is None:
            return ("class",) if several_levels else PARTS
        requirement = "must not contain 'size' for several levels, each of which has sets of its own"
        require("parts", not several_levels or "size" not in self.parts, requirement, remedy="Evaluate one level")
        return self.parts


Count: TypeAlias = Callable[[Callable[..., None]], None]
"""Passes all records to its argument, which is `Tally.add`."""


def answer(
    request: PrivateRequest, comparison: RecordComparison, count: Count, *, charge_first: bool = False
) -> Evaluation:
    """Answer a request for a private evaluation.

    `charge_first` charges before the records are read, because a database engine reads them.
    """
    # Prepare, and check the limit.
    query = request.query(comparison)
    confidence = float(exact_level("confidence", request.confidence))
    _payment(request, query)  # an account with secret n raises for every n
    _warn_of_dependent_records(request)

    read = partial(_read, request, comparison, query, count)

    # A public number of records is part of the query, so it is counted before the charge.
    tally = None
    if request.neighbors == "replace_one" and request.n is None:
        requirement = "must be given with neighbors='replace_one' and a ledger, which is charged before the count"
        require("n", not charge_first or request.ledger is None, requirement)
        tally = read()
        query = replace(query, n=tally.total)

    # Write what may be drawn at most, to raise before the charge.
    payment = _payment(request, query)
    longest = _compact(Evaluation.longest_of(query, confidence))
    log_event("evaluation", "evaluating privately", epsilon=query.epsilon, neighbors=query.neighbors)
    if payment is None:
        return (tally or read()).draw(query, confidence)

    # Read, compare, charge, draw and store.
    from confide.ledger import check_stored, pay

    check_stored("parts", len(longest), "Use parts=()")

    def draw(counted: Tally) -> str:
        return _compact(counted.draw(query, confidence))

    stored = pay(payment, lambda: tally or read(), Tally.content, draw, charge_first=charge_first)
    return replace(Evaluation.from_json(stored), confidence=confidence, release=comparison.release)


def _read(request: PrivateRequest, comparison: RecordComparison, query: CountQuery, count: Count) -> Tally:
    """Count all records, and compare their number with a stated one."""
    tally = Tally(comparison, query)
    count(tally.add)
    if request.n is not None and tally.total != request.n:
        raise InputError("n", f"must be the number of counted records, {tally.total}", got=str(request.n))
    has_records = tally.total or request.neighbors != "replace_one"
    require("n", has_records, "must be at least 1 with neighbors='replace_one'", got="no records")
    return tally


def _payment(request: PrivateRequest, query: CountQuery) -> "Payment[None] | None":
    if request.ledger is None and request.dataset is None:
        require("again", not request.again, "must be left out without a ledger, which alone stores earlier releases")
        return None
    from confide.ledger import make_payment

    mechanism = "evaluation by discrete-laplace"
    content = {"private evaluation": json_fields(query)}
    return make_payment(query.privacy, mechanism, content, request.ledger, request.dataset, again=request.again)


def _warn_of_dependent_records(request: PrivateRequest) -> None:
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


def _compact(evaluation: Evaluation) -> str:
    """The JSON of an evaluation without spaces, which a ledger stores."""
    return json.dumps(json.loads(evaluation.to_json()), separators=(",", ":"))
