"""The answer of a silo: one signed message from a plan and the silo's scores, charged in its ledger before the draw."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.core import SIDES
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.federated.answers import Sending
from confide.federated.keys import SiloKeys
from confide.federated.messages import sign, write_time
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.policy import Policy
from confide.federated.refusals import Refusal
from confide.federated.silo_ledger import SiloLedger, update_checkpoint
from confide.federated.terms import Counts
from confide.scores import name_of_scores
from confide.support import Name, library_versions, log_event

# Scores, or their counts over the candidates of a plan; for groups the counts by name, for sides either by name
Scores = ArrayLike | ScoreHistogram | Mapping[Any, ArrayLike | ScoreHistogram]


def answer(
    plan: str,
    scores: Scores,
    keys: SiloKeys,
    policy: Policy,
    ledger: SiloLedger,
    *,
    groups: ArrayLike | None = None,
    now: datetime | None = None,
) -> str:
    """Answer a plan once. A repeated call returns the same message.

    The plan is checked and the scores are counted. Then the loss is charged durably in the silo's ledger, and the
    mechanism runs. The message is stored in the ledger before it is returned. If two processes answer the same plan at
    once, the second waits for the first and returns the same message.

    Parameters
    ----------
    plan
        The signed plan, of one threshold or of several, which one message answers together.
    scores
        The silo's nonconformity scores, shape (n,), or a histogram of them over the plan's candidates. For groups or
        classes also one histogram for each, by name. For two sides the scores or the histogram of each, by the names
        `cqr_low` and `cqr_high`.
    keys
        The silo's private keys.
    policy
        The silo's policy.
    ledger
        The silo's budget ledger, which stores answers and charges.
    groups
        If the plan has a threshold for each group or class: the group or class of each score, shape (n,).
    now
        The present time, with a time zone; by default that of the system clock.

    Returns
    -------
    str
        A signed JSON message: the index of one candidate for each threshold, or a masked vector.

    Warns
    -----
    OtherDataWarning
        If the plan was answered before from other scores. The old message is returned all the same.

    Raises
    ------
    Refusal
        With a code of `confide.federated.refusals`. The outcome depends on the silo's data only where a score is
        invalid (`InputError`). The text of that error must not be sent to another party.
    """
    # Check the plan, before any record is read
    time = now or datetime.now(UTC)
    parsed = read_plan(plan)
    position = _position(parsed, keys, ledger)
    policy.check_coordinator(parsed)
    cost = ledger.cost(parsed, position)
    policy.check(parsed, position, cost)
    is_new = False

    # The steps of a release, which the ledger calls
    def read() -> Counts:
        if parsed.closed(time):
            raise Refusal("late", "the plan is closed; request a new one")
        counts = _count_for(parsed, scores, groups)
        records = int(counts.sum()) // (len(counts) if parsed.by == "side" else 1)
        if parsed.silos[position].size not in (None, records):
            raise Refusal("size-differs", "the silo does not have the number of records that the plan states")
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=False)
        return counts

    def draw(counts: Counts) -> str:
        nonlocal is_new
        is_new = True
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=True)
        context = f"{parsed.session}|{parsed.digest}".encode()
        content = Sending(
            plan=parsed.digest,
            silo=keys.name,
            answered=write_time(time),
            versions=dict(library_versions()),
            sent=parsed.message(position, counts, keys.agreement, context),
        )
        return sign("answer", content, keys.signing)

    def read_again() -> bytes:
        # Scores that cannot be used count as other data
        try:
            return _bytes_of(_count_for(parsed, scores, groups))
        except (InputError, InputTypeError):
            return b""

    # Read, charge, draw, store; or return the stored answer
    message = ledger.charge_answer(parsed, cost, policy.budget, read, _bytes_of, draw, read_again=read_again)
    if is_new:
        log_event("federated", "answered", silo=keys.name, session=parsed.session, plan=parsed.digest)
    return message


def _position(plan: FederatedPlan, keys: SiloKeys, ledger: SiloLedger) -> int:
    """The position of the silo with these keys in a plan; raises `not-invited` if the plan does not name it."""
    identity = keys.public_keys().identity
    position = next((i for i, silo in enumerate(plan.silos) if silo.identity == identity), None)
    if position is None:
        raise Refusal("not-invited", "the plan does not name this silo with its keys; send your public file again")

    # Two copies of the keys with a ledger each would answer a plan twice. Under masks, which follow from keys and
    # session, the difference of the two messages would be the difference of the data.
    ledger_in_plan = plan.silos[position].ledger
    if ledger_in_plan is not None and ledger_in_plan != ledger.identity:
        raise Refusal(
            "not-invited",
            "the plan names another ledger of this silo than this one; answer with that ledger, or issue the public "
            "file with this one and request a new plan",
        )
    if keys.ledger is not None and keys.ledger != ledger.identity:
        raise Refusal(
            "not-invited",
            "these keys name another ledger than this one; answer with that ledger, or name this one with "
            "`confide federated public --ledger` and request a new plan",
        )
    return position


def _count_for(plan: FederatedPlan, scores: Scores, groups: ArrayLike | None) -> Counts:
    """Counts of scores over the m candidates of the plan, int64, shape (m,); for several parts shape (parts, m).

    Raises
    ------
    InputError, InputTypeError
        If the scores do not match the plan, or `groups` are missing, not allowed, or not in the plan.
    """
    # Two sides, of the same records
    names: tuple[Name, ...] = plan.names
    if plan.by == "side":
        if groups is not None or not isinstance(scores, Mapping) or set(scores) != set(names):
            raise InputError("scores", f"must be given for both sides, by the names {' and '.join(SIDES)}")
        low, high = (_counts(plan, scores[side], part) for part, side in enumerate(SIDES))
        if low.sum() != high.sum():
            raise InputError("scores", "must be of the same records for both sides", got="different numbers of scores")
        return np.array([low, high])

    # One row of counts
    if plan.by is None or plan.by == "level":
        if groups is not None or isinstance(scores, Mapping):
            raise InputError("groups", "must be left out: the plan has no thresholds for groups or classes")
        return _counts(plan, scores)

    # Groups or classes: counts by name
    if isinstance(scores, Mapping):
        if groups is not None or set(scores) != set(names):
            raise InputError(
                "scores", f"must be counts by name for the {len(names)} groups of the plan, without groups"
            )
        return np.array([_counts(plan, scores[name]) for name in names])

    # Groups or classes: the group of each score
    if groups is None or isinstance(scores, ScoreHistogram):
        what = "the class" if plan.by == "class" else "the group"
        raise InputError("groups", f"must state {what} of each score: the plan has a threshold for each")
    # An error about a score states its position among all scores
    _counts(plan, scores)
    array = as_vector("scores", scores, empty=True)
    refuse_other_rows(scores=scores, groups=groups)
    positions = as_positions("groups", groups, names, len(array))
    return np.array([_counts(plan, array[positions == i]) for i in range(len(names))])


def _counts(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram, part: int = 0) -> Counts:
    """Counts for the part at this position."""
    single = plan.single_plans[part]
    try:
        name_of_scores(scores, single.score, plan.request.classes)
    except InputError as error:
        raise InputError("scores", f"must match the plan: {error}") from None
    if not isinstance(scores, ScoreHistogram):
        return ScoreHistogram.from_scores(scores, single.candidates, single.score).counts
    if scores.candidates != single.candidates:
        raise InputTypeError("scores", "must be counted over the candidates of the plan", got="others")
    return scores.counts


def _bytes_of(counts: Counts) -> bytes:
    """The counts that the mechanism uses; their candidates are those of the plan."""
    return counts.astype("<i8").tobytes()
