"""From records and a request to a release: prepare, check, read, compare, charge, draw and store."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from confide.candidates import BUILDERS, Candidates, Spread
from confide.core.calibration import Calibration
from confide.core.design import mechanism_for
from confide.core.plan import make_plan
from confide.core.request import SIDES, Request, joined
from confide.core.several import (
    GroupCalibration,
    LevelCalibration,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
)
from confide.core.sources import AnyRequest, GivenCounts, Seen, Source
from confide.core.terms import Terms
from confide.core.texts import remark, warn_about, warn_of_choices
from confide.core.threshold_request import Key, ThresholdRequest
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.mechanisms import (
    Mechanism,
    NoisySize,
    PpsOfSecretSize,
    SplitConformal,
    certify,
    design_for,
    draw_size,
    privacy_statement,
    with_choice,
)
from confide.selection import check_sampler
from confide.support import (
    MOST_CANDIDATES,
    MOST_RECORDS,
    caller_stacklevel,
    library_versions,
    listening,
    log_event,
)

if TYPE_CHECKING:
    from confide.ledger import Account, Dataset, Entry, Ledger, Payment, Transaction


# Thresholds are validated and priced together; then compared, charged, drawn and stated.
#
# prepare(request, n, payer)     computes the price from public numbers; nothing is charged, no record is read
# prepared.release(look)         does the rest, in the order of `confide.ledger.Transaction.run`; without a ledger, it
#                                draws


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
            for argument, name in (
                ("partition", self.partition),
                *(("names", column) for column in request.overlap.columns),
            ):
                if ": " in name:
                    raise InputError(argument, "must be without ': ', which joins partition and column", got=repr(name))
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
            privacy = privacy_statement(mechanism, terms.neighbors, terms.records_per_person)
            parameters = _request_fields(terms, mechanism, part.score)
        if part.words.renews is not None:  # the renewal of another release is another request
            parameters["renews"] = part.words.renews
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
        """The input of its mechanism, from counts over a superset of its candidates.

        Raises
        ------
        InputError
            If sums of weights do not have the number of records that is required, or are not of a weighted population.
        """
        if isinstance(seen, ScoreHistogram):
            _check_weighted(seen, self.terms)
        if isinstance(seen, ScoreHistogram) and not self.sized and seen.candidates != self.terms.candidates:
            return seen.over(self.terms.candidates)
        return seen

    def fingerprinted(self, seen: Seen) -> bytes:
        """Bytes of the counts that a ledger compares; it stores a keyed fingerprint of them.

        If a noisy number of weighted records is released first, the number is compared, too.
        """
        if not self.sized or not isinstance(seen, ScoreHistogram):
            return fingerprint_bytes(seen)
        counts = fingerprint_bytes(seen.over(self.compared))
        return counts if seen.records is None else counts + seen.records.to_bytes(8, "little")

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
            m, recipe, values = terms.m, terms.candidates.recipe, terms.candidates.values
            threshold = math.inf if mechanism is None else float(values[mechanism.choose(seen.counts)])
        else:
            m, recipe = len(seen) + 1, {"kind": "scores"}
            threshold = mechanism.threshold(seen) if isinstance(mechanism, SplitConformal) else math.inf
        return self._stated(terms, mechanism, threshold, m, recipe, size)

    def rehearse(self) -> Calibration:
        """Run the steps of a release that need no draw, so that their errors are raised before anything is charged.

        The threshold is +inf. If a noisy number of records is released first, a negative one of many digits takes its
        place, and there is no mechanism: `Terms.check_designs` has checked all of them.

        Raises
        ------
        InputError
            If a ledger cannot store the release.
        """
        from confide.ledger import check_stored

        terms, size = self.terms, None
        if terms.size_scale is not None:
            counted = -MOST_RECORDS
            size = NoisySize(counted, terms.size_scale, design_for(counted, terms.size_scale, terms.n_min))
        mechanism = mechanism_for(terms) if size is None else None
        stated = self._stated(terms, mechanism, math.inf, terms.m, terms.candidates.recipe, size)
        check_stored("classes", len(stated.to_json()) + _ROOM, "State their number, or shorter names")
        return stated

    def _stated(
        self,
        terms: Terms,
        mechanism: Mechanism | None,
        threshold: float,
        m: int,
        recipe: Mapping[str, Any],
        size: NoisySize | None,
    ) -> Calibration:
        """The calibration with this threshold: all consequences of public numbers."""
        secret_from = terms.n_min if terms.n is None else None
        guarantee = certify(mechanism, terms.alpha, m, terms.n, secret_from, terms.delta)
        if terms.population is not None:
            guarantee = replace(guarantee, population=str(terms.population))
        stated = Calibration(
            threshold=threshold,
            alpha=terms.alpha,
            guarantee=guarantee,
            privacy=privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale),
            size=size,
            mechanism=mechanism,
            candidates=m,
            recipe=recipe,
            score=self.part.score,
            versions=library_versions(),
            population=terms.population,
        )
        return self.part.words.of(stated)

    def list_of(self, drawn: Calibration) -> Candidates:
        """The candidates of a calibration that `draw` returned, in this request or in an earlier one of the ledger."""
        if drawn.size is None or isinstance(self.part.law, Candidates):
            return self.terms.candidates
        if drawn.recipe["kind"] not in BUILDERS:  # a ledger's release that states the union of several lists
            return self.designed(drawn.size).candidates
        return Candidates.from_recipe(drawn.recipe)

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
            self.rehearse()
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

    def rehearse(self) -> None:
        """Raise all errors of a release for a ledger that no record and no draw can change; nothing is charged."""
        check_sampler()
        rehearsed = {key: threshold.rehearse() for key, threshold in self.thresholds.items()}
        assembled(self.request, rehearsed, {key: one.terms.candidates for key, one in self.thresholds.items()})

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
            lists = {key: self.thresholds[key].designed(size).candidates for key, size in sizes.items() if size}
            for portion in portions(lists):
                again = recount(joined(lists[key] for key in portion))
                seen = {**seen, **{key: again[self.thresholds[key].part.row] for key in portion}}
        return {key: self.thresholds[key].draw(seen[key], sizes[key]) for key in due}


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


def portions(lists: Mapping[Key, Candidates]) -> list[list[Key]]:
    """Divide thresholds so that the union of the lists of each part is short enough to count over; mostly one part.

    Examples
    --------
    >>> portions(dict.fromkeys("abc", Candidates.unit(2**19)) | {"d": Candidates.unit(2**20)})
    [['a', 'b', 'c'], ['d']]
    """
    divided: list[list[Key]] = [[]]
    counted: dict[str, int] = {}
    for key, candidates in lists.items():
        counted[candidates.digest] = candidates.size
        if divided[-1] and sum(counted.values()) > MOST_CANDIDATES:
            divided.append([])
            counted = {candidates.digest: candidates.size}
        divided[-1].append(key)
    return divided


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


def _check_weighted(counts: ScoreHistogram, terms: Terms) -> None:
    """Reject sums of weights whose number of records is missing, or that are taken for numbers of records."""
    if terms.population is None and counts.records is not None:
        raise InputError("histogram", "must be counts of records without weights, unless population is given")
    if terms.population is not None and terms.size_scale is not None and counts.records is None:
        raise InputError(
            "histogram",
            "must have the number of records with weights, ScoreHistogram(..., records=...)",
            remedy="Or state a public guess of it, n_typical",
        )


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
    stated = _choices(replace(terms, longest=None)) | {"n_typical": None, "candidates": None}
    return {"request": stated, "mechanism": None, "candidates": over, "score": part.score}


_ROOM = 2000
"""Characters of a stored release for its mechanism, its recipe and the digits of its threshold."""
_COMPARED = 480
"""The length of the candidate list for a ledger's comparison of counts, if a noisy number of records is released."""


def _choices(terms: Terms) -> dict[str, Any]:
    """The terms as plain values, which identify a request in a ledger; `_LATER` ones only if they are stated."""
    stated = {field.name: _plain(getattr(terms, field.name)) for field in fields(terms)} | {"candidates": terms.m}
    if terms.population is not None:
        stated["population"] = terms.population.fields()
    return {name: value for name, value in stated.items() if name not in _LATER or value is not None}


_LATER = ("rise", "population", "rho", "size_scale", "longest")


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


def release(source: Source, request: AnyRequest, payer: Payer = NO_PAYER) -> Any:
    """Make a release: prepare, check, read, compare, charge, draw and store, in this order.

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
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
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
    >>> from confide.core import Scores
    >>> request = Request(alpha=0.1, epsilon=1.0, score="lac")
    >>> print(release(Scores.of(np.linspace(0, 1, 2000)), request).privacy)
    1-differential privacy and 0.1127-zCDP for adding or removing one record
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
