"""Thresholds that were asked for, checked and priced together; then compared, charged, drawn and stated.

prepare(request, n, payer)     knows the price, from public numbers; nothing is charged, no record is looked at
prepared.release(look)         does the rest, in the order of `confide.ledger.Bill.settle`; without one it only draws
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.calibration.parts import Key, ThresholdRequest
from confide.calibration.request import SIDES, Request
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.mechanisms import Mechanism, PpsOfSecretSize, SplitConformal, certify, privacy_statement
from confide.planning import Terms, make_plan, mechanism_for
from confide.releases import (
    Calibration,
    GroupCalibration,
    LevelCalibration,
    RiskCalibration,
    SidesCalibration,
    remark,
    warn_of,
    warn_of_choices,
)
from confide.support import library_versions, outside, tell

if TYPE_CHECKING:
    from confide.ledger import Account, Bill, Dataset, Entry, Ledger, Payment

Seen: TypeAlias = "ScoreHistogram | NDArray[Any]"
"""What a mechanism sees: counts over its candidates, or for `none` the scores themselves, shape (n,)."""

Look = Callable[[], Mapping[Key, Seen]]
"""Looks at the records, once: what mechanisms see, by row; counts over all candidates of the request."""


@dataclass(frozen=True)
class Payer:
    """Who pays: the data set of a ledger, and for groups the public name of their division. No part of a request.

    Parameters
    ----------
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) of these data's budget.
    partition
        The name of the division into groups, for a release with groups or classes.
    again
        These are the same people with new records: draw anew, and charge it.
    """

    ledger: "Ledger | None" = None
    dataset: "str | Dataset | None" = None
    partition: str | None = None
    again: bool = False

    @property
    def pays(self) -> bool:
        """Whether anybody does."""
        return self.ledger is not None

    def of_parts(self, request: Request) -> dict[Key, "_Share"]:
        """Who pays for each threshold: groups are cells of one partition; nobody without a ledger."""
        given = (self.ledger, self.dataset, self.partition)
        if not request.disjoint and self.partition is not None:
            raise InputError("partition must be left out: the release has no groups")
        if all(one is None for one in given):
            if self.again:
                raise InputError(
                    "again must be left out without a ledger: nothing is remembered, and every call is new"
                )
            return {}
        if not request.disjoint:
            return dict.fromkeys(request.parts, _Share(self, self.dataset))
        from confide.ledger import Dataset, Group, Ledger

        if self.partition is None or self.dataset is None or self.ledger is None:
            raise InputError(
                "ledger, dataset and partition must be given together: whose budget, where, divided by what"
            )
        whole = self.dataset if isinstance(self.dataset, Dataset) else Dataset(self.dataset)
        if whole.group is not None:
            raise InputError("dataset must be the whole one, without a group; its groups are charged by their names")
        accounts = self.ledger.accounts() if isinstance(self.ledger, Ledger) else None
        cells = {key: replace(whole, group=Group(self.partition, str(key))) for key in request.parts}
        return {key: _Share(self, cell, accounts) for key, cell in cells.items()}


NOBODY = Payer()
"""Who pays where there is no ledger."""


@dataclass(frozen=True)
class _Share:
    """Who pays for one threshold; `accounts` are those of the ledger, where it was read already."""

    payer: Payer
    dataset: "str | Dataset | None"
    accounts: "Mapping[str, Account] | None" = None

    def payment(self, part: ThresholdRequest, terms: Terms) -> "Payment":
        """The payment for it."""
        from confide.ledger import make_payment

        mechanism = mechanism_for(terms)
        privacy = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.selector)
        asked = _asked(terms, mechanism, part.score)
        if part.words.predecessors:  # to renew another release is another request
            asked["renewed"] = part.words.predecessors[-1].checksum
        whose = self.payer.ledger, self.dataset
        return make_payment(privacy, terms.mechanism, asked, *whose, again=self.payer.again, accounts=self.accounts)


@dataclass(frozen=True)
class PreparedThreshold:
    """A threshold that was asked for: its part of the request, its terms over its own candidates, and who pays."""

    part: ThresholdRequest
    terms: Terms
    payment: "Payment | None" = None

    def own(self, seen: Seen) -> Seen:
        """What its mechanism sees, of counts over more candidates."""
        if isinstance(seen, ScoreHistogram) and seen.candidates != self.terms.candidates:
            return seen.over(self.terms.candidates)
        return seen

    def draw(self, seen: Seen) -> Calibration:
        """Run the mechanism, once, and state everything that follows from public numbers."""
        terms, mechanism = self.terms, mechanism_for(self.terms)
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
            privacy=privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.selector),
            mechanism=mechanism,
            candidates=m,
            recipe=recipe,
            score=self.part.score,
            versions=library_versions(),
            population=terms.population,
        )
        return self.part.words.of(drawn)

    def warn(self, drawn: Calibration) -> None:
        """Say that a threshold is +inf, or nearly so, and why; and that less is promised than was asked for."""
        made, level, m = drawn.mechanism, self.terms.level, self.terms.m
        if isinstance(made, PpsOfSecretSize) and drawn.guarantee.coverage < float(level):
            enough = made.certified_from(level, m)
            note = (
                f"the promise is coverage of at least {coverage_text(drawn.guarantee.coverage)}, not {float(level):g}: "
                f"with few records pps covers less; state n_min={enough} or more, if so many are certain"
            )
            warnings.warn(note, CoverageWarning, stacklevel=outside())
        needed = _records_needed(self.terms) if math.isinf(drawn.threshold) else None
        if note := remark(drawn, needed, self.terms.epsilon):
            warnings.warn(note, CoverageWarning, stacklevel=outside())


@dataclass(frozen=True)
class PreparedRelease:
    """The thresholds of one release, checked and priced together; made by `prepare`."""

    request: Request
    thresholds: Mapping[Key, PreparedThreshold]

    def refuse_early(self) -> None:
        """Refuse what the ledger's limit does not allow; nothing is charged."""
        if (bill := self._bill()) is not None:
            bill.refuse_over_limit()

    def release(self, look: Look, *, charge_first: bool = False) -> Any:
        """Compare, charge, draw: in this order.

        Parameters
        ----------
        look
            Looks at the records, once.
        charge_first
            Charge before `look` is called, because looking at the data tells somebody something, unless the ledger has
            answered a request that looks identical: then what it costs is known only after the data were compared.

        Raises
        ------
        OtherDataError
            If a request that looks identical was answered about other data; nothing was charged.
        BudgetError
            If the ledger's limit does not allow all of it together; nothing was charged.
        """
        bill = self._bill()
        drawn: Mapping[Key, Calibration]
        earlier: Mapping[Key, Entry] = {}
        if bill is None:
            drawn = self._drawn(self._own(look()), self.thresholds)
        else:
            drawn, earlier = bill.settle(
                lambda: self._own(look()), self._marks, self._drawn, Calibration.to_json, charge_first=charge_first
            )
        for key, one in drawn.items():
            _tell_released(key, one)
        kept = {
            key: drawn[key] if key in drawn else asked.part.words.of(Calibration.from_json(earlier[key].text))
            for key, asked in self.thresholds.items()
        }
        if not self.request.disjoint:  # groups are warned of together
            for key, one in drawn.items():
                self.thresholds[key].warn(one)
        made = assembled(self.request, kept, {key: one.terms.candidates for key, one in self.thresholds.items()})
        if self.request.disjoint:
            warn_of(made)
        warn_of_choices(made)
        return made

    def _bill(self) -> "Bill[Any] | None":
        payments = {key: one.payment for key, one in self.thresholds.items() if one.payment is not None}
        if not payments:
            return None
        from confide.ledger import Bill

        return Bill.of(payments)

    def _own(self, seen: Mapping[Key, Seen]) -> dict[Key, Seen]:
        return {key: one.own(seen[one.part.row]) for key, one in self.thresholds.items()}

    def _marks(self, seen: Mapping[Key, Seen]) -> dict[Key, bytes]:
        return {key: fingerprint_bytes(one) for key, one in seen.items()}

    def _drawn(self, seen: Mapping[Key, Seen], keys: Iterable[Key]) -> dict[Key, Calibration]:
        """These thresholds, drawn, each once."""
        return {key: self.thresholds[key].draw(seen[key]) for key in keys}


def prepare(request: Request, n: int | None = None, payer: Payer = NOBODY) -> PreparedRelease:
    """Settle what is asked, and its price; nothing is charged and nobody has looked at a record.

    Parameters
    ----------
    n
        The number of records, where it is public.

    Examples
    --------
    >>> request = Request(alpha=0.1, epsilon=1.0, score="lac", candidates=100)
    >>> counts = ScoreHistogram.from_scores([0.5] * 1000, Candidates.unit(100))
    >>> prepare(request).release(lambda: {None: counts}).privacy.epsilon
    1.0
    """
    lists, shares, thresholds = request.lists(n), payer.of_parts(request), {}
    for key, part in request.parts.items():
        terms = part.terms.over(lists[key], n or 1)
        _refuse_a_promise_for_no_records(terms)
        share = shares.get(key)
        thresholds[key] = PreparedThreshold(part, terms, None if share is None else share.payment(part, terms))
    if n == 0 and request.public_n:  # an account that keeps n secret has refused by now, whatever n is
        raise InputError("n must be a positive integer; found 0, no records, whose number would be public")
    return PreparedRelease(request, thresholds)


def assembled(request: Request, drawn: Mapping[Key, Calibration], lists: Mapping[Key, Candidates]) -> Any:
    """The release that is made of thresholds."""
    match request.by:
        case "level":
            return _nested(drawn, lists)
        case "group" | "class":
            return GroupCalibration(request.by, request.neighbors, drawn)
        case "side":
            return SidesCalibration(*(drawn[side] for side in SIDES))
    return drawn[None] if request.loss is None else RiskCalibration(request.loss, request.bound, drawn[None])


def _nested(drawn: Mapping[Key, Calibration], lists: Mapping[Key, Candidates]) -> LevelCalibration:
    """Every threshold raised to the largest one of a less demanding level: to the first of its own candidates there."""
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
    """What a mechanism sees, as bytes: the same for the same data, wherever they were counted.

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


def _refuse_a_promise_for_no_records(terms: Terms) -> None:
    """Refuse `pps` for every secret n, one record included, before it is paid: it would promise next to nothing."""
    made = mechanism_for(terms) if terms.mechanism == "pps" and terms.n_min == 1 else None
    if isinstance(made, PpsOfSecretSize) and (enough := made.certified_from(terms.level, terms.m)) > 1:
        raise InputError(
            f"n_min must be given for mechanism='pps' with neighbors='add_remove', which promises next to nothing for "
            f"one record: from n_min={enough} on it promises {float(terms.level):g}; for less state a smaller one, "
            "2 at least"
        )


def _asked(terms: Terms, mechanism: Mechanism | None, score: str | None) -> dict[str, Any]:
    """Everything public that is asked of a threshold: equal ones about the same data are one request."""
    return {
        "request": _choices(terms),
        "mechanism": None if mechanism is None else repr(mechanism),
        "candidates": terms.candidates.digest,
        "score": score,
    }


def _choices(terms: Terms) -> dict[str, Any]:
    """The terms as plain values; as version 0.1 stated them where it knew all of them."""
    stated = {field.name: _plain(getattr(terms, field.name)) for field in fields(terms)} | {"candidates": terms.m}
    if terms.population is not None:
        stated["population"] = terms.population.fields()
    return {name: value for name, value in stated.items() if name not in _LATER or value is not None}


_LATER = ("rise", "population", "rho")


def _plain(value: Any) -> Any:
    if value == math.inf:
        return "+inf"
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _records_needed(terms: Terms) -> int | None:
    """How many records a finite threshold needs, about; None for mechanisms of which it is not known."""
    return make_plan(terms, terms.n or 1).records_needed if terms.mechanism == "slopes" else None


def _tell_released(part: Key, made: Calibration) -> None:
    """What is public of a release, without its threshold, the one thing in it that comes from the records."""
    tell(
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
