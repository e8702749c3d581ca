"""From records and a request to a release.

Records come from a `Source`, wherever they are stored: arrays (`Scores`), batches of a loader (`Batches`), counts that
were computed elsewhere (`GivenCounts`), the rows of a table. A source returns counts over public candidates and nothing
else.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, as_positions, as_vector, refuse_other_rows
from confide.calibration.request import SIDES, Key, Request, ThresholdRequest, joined
from confide.candidates import Candidates, Spread
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.mechanisms import (
    Mechanism,
    NoisySize,
    PpsOfSecretSize,
    SplitConformal,
    certify,
    draw_size,
    privacy_statement,
    with_choice,
)
from confide.planning import ClassShift, Population, RecordWeights, Terms, make_plan, mechanism_for
from confide.releases import (
    Calibration,
    GroupCalibration,
    LevelCalibration,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
    remark,
    warn_about,
    warn_of_choices,
)
from confide.support import caller_stacklevel, canonical_name, library_versions, listening, log_event

if TYPE_CHECKING:
    from confide.ledger import Account, Dataset, Entry, Ledger, Payment, Transaction


# Thresholds are validated and priced together; then compared, charged, drawn and stated.
#
# prepare(request, n, payer)     computes the price from public numbers; nothing is charged, no record is read
# prepared.release(look)         does the rest, in the order of `confide.ledger.Transaction.run`; without a ledger, it
#                                draws


Item = TypeVar("Item")

Seen: TypeAlias = "ScoreHistogram | NDArray[Any]"
"""The input of a mechanism: counts over its candidates, or for `none` the scores themselves, shape (n,)."""

Recount = Callable[[Candidates], Mapping[Key, Seen]]
"""Counts the same records over other candidates, in a second pass."""

Look = Callable[[], Mapping[Key, Seen]]
"""Reads the records, once: the mechanisms' input by row, counted over all candidates of the request."""


@dataclass(frozen=True)
class Payer:
    """The budget that is charged: a data set of a ledger, and for groups the public name of their division.

    It is not part of a request.

    Parameters
    ----------
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) of the data set's budget.
    partition
        The name of the division into groups, for a release with groups or classes. If groups overlap, each column is
        the partition "name: column".
    again
        The same people with new records: draw and charge again.
    """

    ledger: "Ledger | None" = None
    dataset: "str | Dataset | None" = None
    partition: str | None = None
    again: bool = False

    @property
    def has_ledger(self) -> bool:
        """Whether a ledger is charged."""
        return self.ledger is not None

    def by_threshold(self, request: Request) -> dict[Key, "_Share"]:
        """The payer of each threshold: groups are cells of one partition; empty without a ledger."""
        given = (self.ledger, self.dataset, self.partition)
        if not request.disjoint and self.partition is not None:
            raise InputError("partition", "must be left out: the release has no groups")
        if all(value is None for value in given):
            if self.again:
                raise InputError(
                    "again", "must be left out without a ledger: no request is stored, and every call is new"
                )
            return {}
        if not request.disjoint:
            return dict.fromkeys(request.parts, _Share(self, self.dataset))
        from confide.ledger import Dataset, Group, Ledger

        if self.partition is None or self.dataset is None or self.ledger is None:
            raise InputError(
                "ledger", "ledger, dataset and partition must be given together: the budget and the division of records"
            )
        whole = self.dataset if isinstance(self.dataset, Dataset) else Dataset(self.dataset)
        if whole.group is not None:
            raise InputError(
                "dataset", "must be the whole one, without a group", remedy="Its groups are charged by their names"
            )
        accounts = self.ledger.accounts() if isinstance(self.ledger, Ledger) else None
        named = {key: (self.partition, str(key)) for key in request.parts}
        if request.overlap is not None:  # each column divides the records, and is a partition of its own
            named = {
                key: (f"{self.partition}: {column}", value) for key, (column, value) in request.overlap.cells.items()
            }
        return {key: _Share(self, replace(whole, group=Group(*cell)), accounts) for key, cell in named.items()}


NO_PAYER = Payer()
"""The payer if there is no ledger."""


@dataclass(frozen=True)
class _Share:
    """The payer of one threshold; `accounts` are those of the ledger, if it was read already."""

    payer: Payer
    dataset: "str | Dataset | None"
    accounts: "Mapping[str, Account] | None" = None

    def payment(self, part: ThresholdRequest, terms: Terms) -> "Payment":
        """The payment for the threshold."""
        from confide.ledger import make_payment

        if terms.size_scale is not None:
            privacy, parameters = terms.price, _request_fields_before_design(part, terms)
        else:
            mechanism = mechanism_for(terms)
            privacy = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.selector)
            parameters = _request_fields(terms, mechanism, part.score)
        if part.words.predecessors:  # the renewal of another release is another request
            parameters["renewed"] = part.words.predecessors[-1].checksum
        if (chosen := part.words.chosen) is not None:
            privacy = with_choice(privacy, chosen.epsilon)
            parameters["chosen"] = [chosen.name, *chosen.among, str(chosen.share), chosen.epsilon]
        whose = self.payer.ledger, self.dataset
        return make_payment(
            privacy, terms.mechanism, parameters, *whose, again=self.payer.again, accounts=self.accounts
        )


@dataclass(frozen=True)
class PreparedThreshold:
    """A validated and priced threshold: its part of the request, its terms over its own candidates, and its payment.

    If a noisy number of records is released first, the terms are over all candidates that a design may choose.
    """

    part: ThresholdRequest
    terms: Terms
    payment: "Payment | None" = None

    @property
    def sized(self) -> bool:
        """Whether a noisy number of records is released first."""
        return self.terms.size_scale is not None

    @property
    def compared(self) -> Candidates:
        """The candidates of the counts that a ledger compares: a fixed list if the mechanism has a design to come."""
        law = self.part.law
        return Candidates.quantiles(law, _COMPARED) if self.sized and isinstance(law, Spread) else self.terms.candidates

    def own(self, seen: Seen) -> Seen:
        """The input of its mechanism, from counts over a superset of its candidates."""
        if isinstance(seen, ScoreHistogram) and not self.sized and seen.candidates != self.terms.candidates:
            return seen.over(self.terms.candidates)
        return seen

    def fingerprinted(self, seen: Seen) -> bytes:
        """Bytes of the counts that a ledger compares; it stores a keyed fingerprint of them."""
        return fingerprint_bytes(seen.over(self.compared) if self.sized and isinstance(seen, ScoreHistogram) else seen)

    def designed(self, size: NoisySize) -> Terms:
        """The terms for a noisy number of records, over the candidates of its design."""
        return self.terms.designed_for(size.counted).with_candidates(self.part.law, None)

    def size(self, seen: Seen) -> NoisySize | None:
        """Draw the noisy number of records, once; None unless the request has one."""
        if self.terms.size_scale is None or not isinstance(seen, ScoreHistogram):
            return None
        return draw_size(seen.total, self.terms.size_scale, self.terms.n_min)

    def draw(self, seen: Seen, size: NoisySize | None = None) -> Calibration:
        """Run the mechanism, once, and state all consequences of public numbers."""
        terms = self.terms if size is None else self.designed(size)
        mechanism = mechanism_for(terms)
        if isinstance(seen, ScoreHistogram) and seen.candidates != terms.candidates:
            seen = seen.over(terms.candidates)
        if isinstance(seen, ScoreHistogram):
            m, recipe, values = terms.m, seen.candidates.recipe, seen.candidates.values
            threshold = math.inf if mechanism is None else float(values[mechanism.choose(seen.counts)])
        else:
            m, recipe = len(seen) + 1, {"kind": "scores"}
            threshold = mechanism.threshold(seen) if isinstance(mechanism, SplitConformal) else math.inf
        secret_from = terms.n_min if terms.n is None else None
        guarantee = certify(mechanism, terms.alpha, m, terms.n, secret_from, terms.delta)
        if terms.population is not None:
            guarantee = replace(guarantee, population=str(terms.population))
        drawn = Calibration(
            threshold=threshold,
            alpha=terms.alpha,
            guarantee=guarantee,
            privacy=privacy_statement(
                mechanism, terms.neighbors, terms.records_per_person, terms.selector, terms.size_scale
            ),
            size=size,
            mechanism=mechanism,
            candidates=m,
            recipe=recipe,
            score=self.part.score,
            versions=library_versions(),
            population=terms.population,
        )
        return self.part.words.of(drawn)

    def list_of(self, drawn: Calibration) -> Candidates:
        """The candidates of a calibration that `draw` returned."""
        return self.terms.candidates if drawn.size is None else self.designed(drawn.size).candidates

    def warn(self, drawn: Calibration) -> None:
        """Warn of a threshold that is +inf or nearly so, and of a guarantee below the requested level."""
        mechanism, level, m = drawn.mechanism, self.terms.level, self.terms.m
        if isinstance(mechanism, PpsOfSecretSize) and drawn.guarantee.coverage < float(level):
            enough = mechanism.certified_from(level, m)
            note = (
                f"the promise is coverage of at least {coverage_text(drawn.guarantee.coverage)}, not {float(level):g}: "
                f"with few records pps covers less; state n_min={enough} or more, if so many are certain"
            )
            warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
        terms = self.terms if drawn.size is None else self.designed(drawn.size)
        needed = _records_needed(terms) if math.isinf(drawn.threshold) else None
        if note := remark(drawn, needed, self.terms.epsilon):
            warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())


@dataclass(frozen=True)
class PreparedRelease:
    """The thresholds of one release, validated and priced together; made by `prepare`."""

    request: Request
    thresholds: Mapping[Key, PreparedThreshold]

    @property
    def candidates(self) -> Candidates:
        """The union of all candidates: counts over it determine the counts over each list."""
        return joined(threshold.terms.candidates for threshold in self.thresholds.values())

    def check_limit(self) -> None:
        """Raise an error if the request exceeds the ledger's limit; nothing is charged."""
        if (transaction := self._transaction()) is not None:
            transaction.check_limit()

    @property
    def compared(self) -> Candidates:
        """The union of the candidates of the counts that a ledger compares."""
        return joined(one.compared for one in self.thresholds.values())

    def release(self, look: Look, recount: Recount | None = None, *, charge_first: bool = False) -> Any:
        """Compare, charge, draw: in this order.

        Parameters
        ----------
        look
            Reads the records, once: counts over all candidates, or over `compared` with `recount`.
        recount
            Counts the records over the candidates of the designs, in a second pass.
        charge_first
            Charge before `look` is called, because reading the data informs another system. If the ledger has answered
            a request that looks identical, the charge comes later: the cost is known only after the data are compared.

        Raises
        ------
        OtherDataError
            If a request that looks identical was answered with other records; nothing was charged.
        BudgetError
            If the ledger's limit does not allow all of it together; nothing was charged.
        """
        transaction = self._transaction()
        drawn: Mapping[Key, Calibration]
        earlier: Mapping[Key, Entry] = {}
        if transaction is None:
            drawn = self._draw(self._inputs(look()), self.thresholds, recount)
        else:
            drawn, earlier = transaction.run(
                lambda: self._inputs(look()),
                self._fingerprints,
                lambda seen, keys: self._draw(seen, keys, recount),
                Calibration.to_json,
                charge_first=charge_first,
            )
        if listening("calibration"):
            for key, one in drawn.items():
                _tell_released(key, one)
        kept = {
            key: drawn[key] if key in drawn else prepared.part.words.of(Calibration.from_json(earlier[key].text))
            for key, prepared in self.thresholds.items()
        }
        result = assembled(self.request, kept, {key: one.list_of(kept[key]) for key, one in self.thresholds.items()})
        if not self.request.disjoint:  # one warning for all groups together
            for key, one in drawn.items():
                self.thresholds[key].warn(one)
        else:
            warn_about(result)
        warn_of_choices(result)
        return result

    def _transaction(self) -> "Transaction[Any] | None":
        payments = {
            key: threshold.payment for key, threshold in self.thresholds.items() if threshold.payment is not None
        }
        if not payments:
            return None
        from confide.ledger import Transaction

        return Transaction.of(payments)

    def _inputs(self, seen: Mapping[Key, Seen]) -> dict[Key, Seen]:
        return {key: threshold.own(seen[threshold.part.row]) for key, threshold in self.thresholds.items()}

    def _fingerprints(self, seen: Mapping[Key, Seen]) -> dict[Key, bytes]:
        return {key: self.thresholds[key].fingerprinted(statistic) for key, statistic in seen.items()}

    def _draw(self, seen: Mapping[Key, Seen], keys: Iterable[Key], recount: Recount | None) -> dict[Key, Calibration]:
        """Draw all noisy numbers of records first: one second pass then counts for all thresholds."""
        due = list(keys)
        sizes = {key: self.thresholds[key].size(seen[key]) for key in due}
        if recount is not None and any(sizes.values()):
            lists = [self.thresholds[key].designed(size).candidates for key, size in sizes.items() if size is not None]
            again = recount(joined(lists))
            seen = {**seen, **{key: again[self.thresholds[key].part.row] for key in due if sizes[key] is not None}}
        return {key: self.thresholds[key].draw(seen[key], sizes[key]) for key in due}


class AnyRequest(Protocol):
    """A request to records: a `Request`, or for randomised labels a `LabelRequest`."""

    @property
    def public_n(self) -> bool:
        """Whether the number of records is public."""

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """Candidates that suffice to count everything that is required."""


class Prepared(Protocol):
    """A validated and priced request."""

    @property
    def candidates(self) -> Candidates:
        """The candidates for counting."""

    def release(self, look: Callable[[], Mapping[Any, Any]], *, charge_first: bool = False) -> Any:
        """Compare, charge, draw: in this order."""


@singledispatch
def prepare(request: AnyRequest, n: int | None = None, payer: Payer = NO_PAYER) -> Prepared:
    """Validate a request and compute its price; nothing is charged and no record is read.

    Parameters
    ----------
    request
        The request; each kind of request has its own implementation, such as `prepare_thresholds`.
    n
        The number of records, if it is public.
    payer
        The budget that is charged.
    """
    raise NotImplementedError(type(request).__name__)


@prepare.register
def prepare_thresholds(request: Request, n: int | None = None, payer: Payer = NO_PAYER) -> PreparedRelease:
    """Prepare the thresholds of a `Request`, with their price; see `prepare`.

    Examples
    --------
    >>> request = Request(alpha=0.1, epsilon=1.0, score="lac", candidates=100)
    >>> counts = ScoreHistogram.from_scores([0.5] * 1000, Candidates.unit(100))
    >>> prepare_thresholds(request).release(lambda: {None: counts}).privacy.epsilon
    1.0
    """
    lists, shares, thresholds = request.lists(n), payer.by_threshold(request), {}
    for key, part in request.parts.items():
        terms = part.terms.with_candidates(lists[key], n or 1)
        _check_pps_minimum(terms)
        share = shares.get(key)
        thresholds[key] = PreparedThreshold(part, terms, None if share is None else share.payment(part, terms))
    if n == 0 and request.public_n:  # an account with a secret n has raised an error before this, whatever n is
        raise InputError("n", "must be a positive integer", got="0, no records, whose number would be public")
    return PreparedRelease(request, thresholds)


def assembled(request: Request, drawn: Mapping[Key, Calibration], lists: Mapping[Key, Candidates]) -> Any:
    """Make a release from thresholds."""
    match request.by:
        case "level":
            return _nested(drawn, lists)
        case "group" if request.overlap is not None:
            return OverlappingCalibration("group", request.neighbors, drawn, request.overlap)
        case "group" | "class":
            return GroupCalibration(request.by, request.neighbors, drawn)
        case "side":
            return SidesCalibration(*(drawn[side] for side in SIDES))
    return drawn[None] if request.loss is None else RiskCalibration(request.loss, request.bound, drawn[None])


def _nested(drawn: Mapping[Key, Calibration], lists: Mapping[Key, Candidates]) -> LevelCalibration:
    """Raise every threshold to the largest of the less demanding levels, to its own first candidate not below that."""
    reached = -math.inf
    raised = {}
    for level in sorted(drawn, reverse=True):
        reached = max(reached, drawn[level].threshold)
        if drawn[level].recipe["kind"] != "scores":
            values = lists[level].values
            reached = float(values[np.searchsorted(values, reached)])
        raised[level] = replace(drawn[level], threshold=reached)
    return LevelCalibration(raised)


def fingerprint_bytes(seen: Seen) -> bytes:
    """The input of a mechanism as bytes: the same for the same data, wherever they were counted.

    Examples
    --------
    >>> candidates = Candidates.unit(10)
    >>> one, other = (ScoreHistogram.from_scores(scores, candidates) for scores in ([0.1, 0.9], [0.9, 0.1]))
    >>> fingerprint_bytes(one) == fingerprint_bytes(other)
    True
    """
    if isinstance(seen, ScoreHistogram):
        return seen.candidates.digest.encode() + seen.counts.astype("<i8").tobytes()
    return np.sort(seen.astype("<f8")).tobytes()


def _check_pps_minimum(terms: Terms) -> None:
    """Reject `pps` with a secret n and n_min = 1 before anything is charged: it would guarantee next to nothing."""
    mechanism = mechanism_for(terms) if terms.mechanism == "pps" and terms.n_min == 1 else None
    if isinstance(mechanism, PpsOfSecretSize) and (enough := mechanism.certified_from(terms.level, terms.m)) > 1:
        raise InputError(
            "n_min",
            (
                "must be given for mechanism='pps' with neighbors='add_remove', because this mechanism guarantees "
                "almost no coverage if there is only one calibration record"
            ),
            remedy=(
                f"With n_min={enough} or more the guaranteed coverage is {float(terms.level):g}; with a smaller n_min, "
                "at least 2, it is lower"
            ),
        )


def _request_fields(terms: Terms, mechanism: Mechanism | None, score: str | None) -> dict[str, Any]:
    """All public parameters of a threshold: equal parameters with the same data are the same request."""
    return {
        "request": _choices(terms),
        "mechanism": None if mechanism is None else repr(mechanism),
        "candidates": terms.candidates.digest,
        "score": score,
    }


def _request_fields_before_design(part: ThresholdRequest, terms: Terms) -> dict[str, Any]:
    """The same fields for a threshold with a noisy number of records, before its design is known."""
    law = part.law
    over = law.digest if isinstance(law, Candidates) else repr(law)
    stated = _choices(terms) | {"n_typical": None, "candidates": None}
    return {"request": stated, "mechanism": None, "candidates": over, "score": part.score}


_COMPARED = 480
"""The length of the candidate list for a ledger's comparison of counts, if a noisy number of records is released."""


def _choices(terms: Terms) -> dict[str, Any]:
    """The terms as plain values; in the form of version 0.1 if that has fields for all of them."""
    stated = {field.name: _plain(getattr(terms, field.name)) for field in fields(terms)} | {"candidates": terms.m}
    if terms.population is not None:
        stated["population"] = terms.population.fields()
    return {name: value for name, value in stated.items() if name not in _LATER or value is not None}


_LATER = ("rise", "population", "rho", "size_scale")


def _plain(value: Any) -> Any:
    if value == math.inf:
        return "+inf"
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _records_needed(terms: Terms) -> int | None:
    return make_plan(terms, terms.n or 1).records_needed if terms.mechanism == "slopes" else None


def _tell_released(part: Key, made: Calibration) -> None:
    """Report the public part of a release, without its threshold, the only field that depends on the records."""
    log_event(
        "calibration",
        "released",
        part=part,
        score=made.score,
        alpha=made.alpha,
        coverage=made.coverage,
        epsilon=made.privacy.epsilon,
        neighbors=made.privacy.neighbors,
        n="secret" if made.n is None else made.n,
    )


class Source(Protocol):
    """Access to records, wherever they are stored."""

    @property
    def n(self) -> int | None:
        """The number of records if it is cheap to determine, else None."""

    @property
    def reading_is_visible(self) -> bool:
        """Whether reading the records informs another system, so that a ledger must be charged first."""

    @property
    def recounts(self) -> bool:
        """Whether two passes over few candidates are faster than one pass over very many."""
        return False

    def count(self, request: Any, candidates: Candidates) -> Mapping[Key, Any]:
        """The mechanisms' input by row of the request: counts over the candidates; without privacy the scores."""


def release(source: Source, request: AnyRequest, payer: Payer = NO_PAYER) -> Any:
    """Make a release: choose candidates, price, validate, read, compare, charge, draw, store and state, in this order.

    Parameters
    ----------
    source
        The records.
    request
        The public parameters.
    payer
        The budget that is charged.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration, RiskCalibration or NoisyLabelCalibration
        The type follows from the request.

    Raises
    ------
    InputError, InputTypeError
        If the records cannot be used, or if their number is public but unknown and must be charged first; then nothing
        was released.
    OtherDataError, BudgetError, LedgerError
        If the ledger does not allow it; then nothing was released.

    Examples
    --------
    >>> request = Request(alpha=0.1, epsilon=1.0, score="lac")
    >>> print(release(Scores.of(np.linspace(0, 1, 2000)), request).privacy)
    1-differential privacy for adding or removing one record
    """
    n = source.n
    if request.public_n and n is None:
        if source.reading_is_visible and payer.has_ledger:
            raise InputError("n", "must be given under neighbors='replace_one' with a ledger, to charge it beforehand")
        if payer.has_ledger:  # an account with a secret n raises an error whatever n is, before a record is read
            prepare(request, 1, payer)
        source = GivenCounts(source.count(request, request.counted_over(known_later=True)))
        n = source.n
    prepared = prepare(request, n if request.public_n else None, payer)
    if isinstance(prepared, PreparedRelease) and prepared.request.sized and source.recounts:
        compared = prepared.compared  # two short lists are faster than one list of all possible candidates
        return prepared.release(
            lambda: source.count(request, compared),
            lambda candidates: source.count(request, candidates),
            charge_first=source.reading_is_visible,
        )
    candidates = prepared.candidates
    return prepared.release(lambda: source.count(request, candidates), charge_first=source.reading_is_visible)


@dataclass(frozen=True)
class GivenCounts:
    """Counts that were computed elsewhere, by row, over the required candidates or a superset."""

    counts: Mapping[Key, Any]
    reading_is_visible = recounts = False

    @property
    def n(self) -> int:
        """The number of records."""
        first = next(iter(self.counts.values()))
        return first.total if isinstance(first, ScoreHistogram) else len(first)

    def count(self, request: AnyRequest, candidates: Candidates) -> Mapping[Key, Any]:
        """The same counts."""
        return self.counts


@dataclass(frozen=True)
class Batches:
    """Scores in batches that are read once, for example from a loader.

    Parameters
    ----------
    scores
        Arrays of shape (n,).
    empty
        The requirement in the error message if there is no record and the number of records would be public.
    """

    scores: Iterable[NDArray[Any]]
    empty: str
    n = None
    reading_is_visible = recounts = False

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, Seen]:
        """The counts of all batches."""
        ((row, score),) = request.rows.items()
        counts = ScoreHistogram.empty(candidates)
        for scores in self.scores:
            counts += ScoreHistogram.from_scores(scores, candidates, score)
        if request.public_n and not counts.total:
            raise InputError("loader", self.empty, got="none")
        return {row: counts}


def first_and_all(values: Iterable[Item]) -> tuple[Item | None, Iterator[Item]]:
    """Return the first of values that are read once (None if there is none), and an iterator over all of them.

    Examples
    --------
    >>> first, values = first_and_all(iter("abc"))
    >>> first, list(values)
    ('a', ['a', 'b', 'c'])
    """
    rest = iter(values)
    for first in rest:
        return first, chain([first], rest)
    return None, rest


@dataclass(frozen=True)
class Scores:
    """Scores in memory, by row: of both sides, or of every record, with its group, class or weight.

    Parameters
    ----------
    values
        Arrays of shape (n,), by row; by None if groups divide them.
    groups, labels, weights
        Further data of each record that a request requires, shape (n,).
    places
        Instead of `groups`: the position of each record's group among the rows of the request, -1 for no group.
        Shape (n,), or (n, columns) if groups overlap.
    beyond
        Whether scores of +inf are accepted, which lie outside every score's range. They count above every finite
        candidate.
    """

    values: Mapping[Key, NDArray[Any]]
    groups: Groups | None = None
    labels: ArrayLike | None = None
    weights: ArrayLike | None = None
    places: NDArray[np.int64] | None = None
    beyond: bool = False
    reading_is_visible = False
    recounts = True

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        groups: Groups | None = None,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> "Scores":
        """Make a source of one score for each record, shape (n,), with further data of each record."""
        refuse_other_rows(scores=scores, groups=groups, labels=labels, weights=weights)
        return cls({None: as_vector("scores", scores, empty=True)}, groups, labels, weights)

    @property
    def n(self) -> int:
        """The number of records."""
        return len(next(iter(self.values.values())))

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, Seen]:
        """The counts of each row; an error about a score reports its position among all records."""
        parts = {part.row: part for part in request.parts.values()}
        if request.disjoint:
            array, score = self.values[None], next(iter(parts.values())).score
            place = self.places
            if place is None and request.overlap is not None:
                place = request.overlap.places(self.groups, len(array))  # type: ignore[arg-type]
            elif place is None:
                place = as_positions("groups", self.groups, tuple(parts), len(array))  # type: ignore[arg-type]
            self._counts(array, candidates, score)
            inside = place[:, None] if place.ndim == 1 else place
            return {
                row: self._counts(array[(inside == i).any(axis=1)], candidates, score) for i, row in enumerate(parts)
            }
        seen: dict[Key, Seen] = {}
        for row, part in parts.items():
            array = self.values[row]
            counts = self._counts(array, candidates, part.score)
            if part.terms.population is not None:
                counts = ScoreHistogram.from_weights(array, self._steps(part.terms.population), candidates)
            seen[row] = array if part.terms.mechanism == "none" else counts
        return seen

    def _counts(self, array: NDArray[Any], candidates: Candidates, score: str | None) -> ScoreHistogram:
        if not self.beyond:
            return ScoreHistogram.from_scores(array, candidates, score)
        beyond = np.isposinf(array)
        last = np.zeros(candidates.size, dtype=np.int64)
        last[-1] = np.count_nonzero(beyond)
        return ScoreHistogram.from_scores(array[~beyond], candidates, score) + ScoreHistogram(candidates, last)

    def _steps(self, population: Population) -> NDArray[Any]:
        """The integer weight of each record."""
        if isinstance(population, RecordWeights):
            given = as_vector("weights", self.weights, empty=True)  # type: ignore[arg-type]
            if len(given) != self.n:
                raise InputError("weights", f"must have shape ({self.n},), one per record", got=f"shape {given.shape}")
            return population.whole(given)
        places = as_positions("labels", self.labels, population.classes, self.n)  # type: ignore[arg-type]
        return np.array(population.steps)[places]


def weighted_sum(counts: Mapping[Any, ScoreHistogram], population: ClassShift) -> ScoreHistogram:
    """Weighted counts of records, computed from the counts of each class.

    Examples
    --------
    >>> counts = {name: ScoreHistogram.from_scores([0.1], Candidates.of([0.5])) for name in ("a", "b")}
    >>> weighted_sum(counts, ClassShift.of_weights({"a": 1, "b": 3})).counts
    array([4, 0])
    """
    named = {canonical_name(name): class_counts for name, class_counts in counts.items()}
    steps = dict(zip(map(canonical_name, population.classes), population.steps, strict=True))
    total = sum(class_counts.counts * steps[name] for name, class_counts in named.items())
    return ScoreHistogram(next(iter(named.values())).candidates, np.asarray(total))
