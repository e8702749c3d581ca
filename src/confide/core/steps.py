"""The one way from records to a release: prepare, check, read, compare, charge, draw, store."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from confide.candidates import Candidates
from confide.core.account import NO_PAYER, Payer, open_account
from confide.core.draws import CountThenDraw, Step, prepare
from confide.core.release import Release
from confide.core.remarks import warn_about, warn_of_choices
from confide.core.request import Request
from confide.core.sources import GivenCounts, Source
from confide.core.statement import Key
from confide.core.terms import Terms
from confide.core.thresholds import Threshold
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.selection import check_sampler
from confide.support import library_versions, log_event


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
    payments = payer.payments(request, {key: step.bill for key, step in steps.items()})
    if n == 0:  # payments for a secret number have raised their own error
        raise InputError("n", "must be at least 1 if the number of records is public", got="0")

    with open_account(request, payments) as account:
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
    if payer.has_ledger:  # payments for a secret n raise an error whatever n is, before a record is read
        payer.payments(request, {key: step.bill for key, step in prepare(request, 1).items()})
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
        spread = request.terms[level].known_spread
        listed = spread if isinstance(spread, Candidates) else Candidates.from_recipe(thresholds[level].recipe)
        reached = float(listed.values[np.searchsorted(listed.values, reached)])
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
