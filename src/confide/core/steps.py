"""The one way from records to a release: prepare, check, read, compare, charge, draw, store.

A step is one draw of a request: of a threshold, or of a noisy histogram that serves several levels. `Draw` has a design
that is known before a record is read; `CountThenDraw` releases a noisy number of records first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from confide.candidates import Candidates, listed
from confide.core.account import NO_PAYER, Bill, Payer, open_account
from confide.core.design import Design, sized_design, unanswered_design
from confide.core.population import ClassShift, RecordWeights
from confide.core.promise import sized_privacy
from confide.core.release import Release
from confide.core.remarks import warn_about, warn_of_choices
from confide.core.request import Request
from confide.core.sources import GivenCounts, Source
from confide.core.terms import Terms
from confide.core.threshold import Threshold
from confide.core.thresholds import Key
from confide.core.tuning import LONGEST
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms import NoisyHistogram, PpsOfSecretSize, PrivacyStatement, draw_size
from confide.selection import check_sampler
from confide.support import MOST_RECORDS, library_versions, log_event, require


def release(source: Source, request: Request, payer: Payer = NO_PAYER) -> Release:
    """Make a release: prepare, check, read, compare, charge, draw and store, in this order.

    Raises
    ------
    InputError, InputTypeError
        If the records cannot be used, or if their number is public but unknown and must be charged first; then nothing
        was released.
    OtherDataError, BudgetError, LedgerError
        If the ledger does not allow it; then nothing was released.
    """
    # Prepare, from public numbers alone: every design that waits for no noisy number, and the price of each draw.
    source, n = _with_public_number(source, request, payer)
    steps = prepare(request, 1 if n == 0 else n)
    payment = payer.payment(request, {key: step.bill for key, step in steps.items()})
    require("n", n != 0, "must be at least 1 if the number of records is public", got="0")

    with open_account(request, payment) as account:
        # Check the limit, once an identical request in progress has ended, and everything else that may fail.
        account.check_limit()
        if payer.has_ledger:
            rehearse(request, steps)

        # Read. Where reading is visible, the charge comes first, unless an earlier release may be the answer.
        tokens = account.charge() if source.reading_is_visible and not account.has_earlier else None
        by_row = source.count(request, request.counted_over(n))  # over candidates that contain those of all designs
        counts = {key: by_row[request.row(key)] for key in steps}
        for key, step in steps.items():
            _check_weighted(counts[key], step.terms)

        # Compare with earlier requests.
        marks = {key: _mark(step, counts[key]) for key, step in steps.items()}
        earlier = account.earlier_releases(marks)

        # Charge what is new.
        if tokens is None:
            tokens = account.charge(without=earlier)

        # Draw: noisy numbers of records first, where they are released, then the thresholds.
        draws = {key: steps[key].prepared(counts[key]) for key in tokens}
        drawn = {key: step.draw(counts[key]) for key, step in draws.items()}

        # Store, before it is returned.
        account.store(tokens, drawn, marks)
        _tell_released(drawn)
        answered = account.answers(earlier, n)

    thresholds = {key: drawn[key] if key in drawn else answered[key].thresholds for key in steps}
    versions = library_versions() if drawn else next(iter(answered.values())).versions  # those of an earlier release
    released = assembled(request, thresholds, versions)
    warn_about(released)
    warn_of_choices(released)
    return released


def rehearse(request: Request, steps: Mapping[Key, Step]) -> None:
    """Run all that needs no draw, so that its errors are raised before anything is charged."""
    from confide.core.files import entry_text

    check_sampler()
    rehearsed = {draw: step.rehearsed() for draw, step in steps.items()}
    for thresholds in rehearsed.values():
        entry_text(request, thresholds, {})
    assembled(request, rehearsed, library_versions()).to_json()


def assembled(request: Request, drawn: Mapping[Key, Mapping[Key, Threshold]], made_with: Mapping[str, str]) -> Release:
    """The release of the thresholds of all draws; those of several levels are nested."""
    thresholds = {key: threshold for thresholds in drawn.values() for key, threshold in thresholds.items()}
    thresholds = _nested(request, thresholds) if request.by == "level" and not request.joint else thresholds
    return Release(request.stated(), thresholds, made_with)


def _with_public_number(source: Source, request: Request, payer: Payer) -> tuple[Source, int | None]:
    """The source, and the number of records if it is public; read once if only a pass shows it."""
    n = source.n
    if not request.public_n:
        return source, None
    if n is not None:
        return source, n
    if source.reading_is_visible and payer.has_ledger:
        raise InputError(
            "n",
            "must be given under neighbors='replace_one' with a ledger, which is charged before the records are read",
        )
    if payer.has_ledger:  # a payment for a secret n raises an error whatever n is, before a record is read
        payer.payment(request, {key: step.bill for key, step in prepare(request, 1).items()})
    source = GivenCounts(source.count(request, request.counted_over()))
    return source, source.n


def _mark(step: Step, counts: ScoreHistogram) -> bytes:
    """Bytes of the counts, of which a ledger keeps a keyed fingerprint."""
    marked = step.candidates.digest.encode() + counts.over(step.candidates).counts.astype("<i8").tobytes()
    if isinstance(step, CountThenDraw) and counts.records is not None:
        marked += counts.records.to_bytes(8, "little")
    return marked


def _nested(request: Request, thresholds: Mapping[Key, Threshold]) -> dict[Key, Threshold]:
    """Raise every threshold to the largest of the less demanding levels, to its own first candidate not below that."""
    reached = -math.inf
    raised = {}
    for level in sorted(thresholds, reverse=True):
        reached = max(reached, thresholds[level].threshold)
        values = listed(request.terms[level].known_spread, thresholds[level].recipe["size"]).values
        reached = float(values[np.searchsorted(values, reached)])
        raised[level] = replace(thresholds[level], threshold=reached)
    return raised


def _check_weighted(counts: ScoreHistogram, terms: Terms) -> None:
    """Reject sums of weights whose number of records is missing, or that are taken for numbers of records."""
    if terms.population is None and counts.records is not None:
        raise InputError("histogram", "must be counts of records without weights, unless population is given")
    if terms.population is not None and terms.size_scale is not None and counts.records is None:
        raise InputError(
            "histogram", "must state the number of records if they have weights, by ScoreHistogram(..., records=...)"
        )


def _tell_released(drawn: Mapping[Key, Mapping[Key, Threshold]]) -> None:
    """Report the public part of a release, without its thresholds, the only fields that depend on the records."""
    for key, threshold in (item for thresholds in drawn.values() for item in thresholds.items()):
        log_event(
            "core",
            "released",
            part=key,
            score=threshold.score,
            alpha=threshold.alpha,
            coverage=threshold.coverage,
            epsilon=threshold.privacy.epsilon,
            neighbors=threshold.privacy.neighbors,
            n="secret" if threshold.n is None else threshold.n,
        )


# The steps, one for each draw of a request.


@dataclass(frozen=True)
class Draw:
    """Thresholds whose designs are known: one, or those of several levels, which follow from one noisy histogram."""

    designs: Mapping[Key, Design]
    request: Request

    @property
    def design(self) -> Design:
        """The first design; the candidates and the noise are the same in all of them."""
        return next(iter(self.designs.values()))

    @property
    def terms(self) -> Terms:
        """The terms that the first design follows from."""
        return self.design.terms

    @property
    def bill(self) -> Bill:
        """What it costs, and what identifies its request."""
        terms = self.terms
        known = [design.mechanism for design in self.designs.values()]
        mechanisms = [None if mechanism is None else mechanism.stated() for mechanism in known]
        identity = {
            "request": _plain_fields(terms) | {"candidates": self.candidates.size},
            "n": self.design.n if terms.public_n else None,
            "mechanism": mechanisms if terms.levels else mechanisms[0],
            "candidates": self.candidates.digest,
        }
        dearest = max((design.privacy for design in self.designs.values()), key=lambda privacy: privacy.epsilon)
        return _bill(terms, self.request, dearest, identity)

    @property
    def candidates(self) -> Candidates:
        """The candidates over which the records are recognised."""
        return self.design.candidates

    def prepared(self, counts: ScoreHistogram) -> Draw:
        """The step itself, because its designs are known."""
        return self

    def draw(self, counts: ScoreHistogram) -> dict[Key, Threshold]:
        """Draw noisy counts, or one candidate: the only step that depends on private counts and is released."""
        counted = counts.over(self.candidates).counts
        mechanisms = (design.mechanism for design in self.designs.values())
        mechanism = next((known for known in mechanisms if known is not None), None)
        if mechanism is None:
            return self.rehearsed()
        if isinstance(mechanism, NoisyHistogram):  # several levels have histograms with the same noise
            noisy = tuple(mechanism.noisy(counted).tolist())
            return {key: design.counted_threshold(noisy) for key, design in self.designs.items()}
        value = float(self.candidates.values[mechanism.choose(counted)])
        return {key: design.threshold(value) for key, design in self.designs.items()}

    def rehearsed(self) -> dict[Key, Threshold]:
        """The threshold +inf, without a draw."""
        return {key: design.threshold(math.inf) for key, design in self.designs.items()}


@dataclass(frozen=True)
class CountThenDraw:
    """The default: a noisy number of records is released first, and the designs of one or several levels follow it."""

    parts: Mapping[Key, Terms]
    request: Request

    @property
    def terms(self) -> Terms:
        """The first terms; all have the same noisy number, and the same price."""
        return next(iter(self.parts.values()))

    @property
    def bill(self) -> Bill:
        """What it costs at most, whatever the noisy number is, and what identifies its request."""
        terms = self.terms
        spread = terms.known_spread
        identity = {
            "request": _plain_fields(terms),
            "mechanism": None,
            "candidates": spread.digest if isinstance(spread, Candidates) else replace(spread, most=None).recipe,
        }
        return _bill(terms, self.request, sized_privacy(terms), identity)

    @property
    def candidates(self) -> Candidates:
        """The candidates over which the records are recognised, whatever the noisy number is."""
        return listed(self.terms.known_spread, LONGEST)

    def prepared(self, counts: ScoreHistogram) -> Draw:
        """Draw the noisy number of records, and search the designs for it."""
        assert self.terms.size_scale is not None
        size = draw_size(counts.total, self.terms.size_scale, self.terms.n_min)
        return Draw({key: sized_design(terms, size) for key, terms in self.parts.items()}, self.request)

    def rehearsed(self) -> dict[Key, Threshold]:
        """The answer +inf without a mechanism, as for the smallest possible noisy number of records.

        `Terms.check_designs` has checked all mechanisms.
        """
        size = self.terms.noisy_size(-MOST_RECORDS)
        few = {key: replace(unanswered_design(terms), size=size) for key, terms in self.parts.items()}
        return Draw(few, self.request).rehearsed()


Step: TypeAlias = Draw | CountThenDraw


def _bill(terms: Terms, request: Request, privacy: PrivacyStatement, identity: dict[str, Any]) -> Bill:
    # A renewed release and a private choice of the score make a request another one.
    if request.renews is not None:
        identity["renews"] = request.renews
    if (chosen := request.chosen) is not None:
        identity["chosen"] = [chosen.name, *chosen.among, str(chosen.share), chosen.epsilon]
    return Bill(privacy, terms.mechanism, identity)


# Fields of terms that a request in a ledger states otherwise, or that do not matter to its answer.
_UNIDENTIFIED = ("spread", "largest", "choice", "noise")


def _plain_fields(terms: Terms) -> dict[str, Any]:
    """The fields as JSON values, without defaults: a field that a later version adds changes no earlier request."""
    stated = {}
    for field in fields(terms):
        value = getattr(terms, field.name)
        if field.name not in _UNIDENTIFIED and value != field.default:
            stated[field.name] = _plain(value)
    return stated


def _plain(value: Any) -> Any:
    match value:
        case math.inf:
            return "+inf"
        case ClassShift() | RecordWeights():
            return value.fields()
        case tuple():
            return [_plain(element) for element in value]
        case None | int() | float() | str():
            return value
    return str(value)


def prepare(request: Request, n: int | None = None) -> dict[Key, Step]:
    """The steps of a request by draw, from public numbers alone; `n` is the number of records if it is public."""
    steps: dict[Key, Step] = {}
    designs = request.designs(n)
    for draw, keys in request.draws.items():
        known = {key: design for key in keys if (design := designs[key]) is not None}
        waiting = {key: request.terms[key] for key in keys if key not in known}
        steps[draw] = CountThenDraw(waiting, request) if waiting else Draw(known, request)
        for design in known.values():
            _check_pps_minimum(design)
    return steps


def _check_pps_minimum(design: Design) -> None:
    """Reject `pps` with a secret n and n_min = 1 before anything is charged: it would guarantee next to nothing."""
    terms = design.terms
    mechanism = design.mechanism
    if not isinstance(mechanism, PpsOfSecretSize) or terms.n_min > 1:
        return
    if (enough := mechanism.certified_from(terms.level, design.candidates.size)) > 1:
        must = (
            "must be given for mechanism='pps' with neighbors='add_remove', because this mechanism guarantees almost "
            "no coverage if there is only one calibration record"
        )
        remedy = (
            f"With n_min={enough} or more the guaranteed coverage is {float(terms.level):g}; with a smaller n_min, at "
            "least 2, it is lower"
        )
        raise InputError("n_min", must, remedy=remedy)
