"""A silo's own records as counts over the candidates of a plan: one row of them, or one for each group.

What runs in a silo: one plan and the silo's own scores in, one small signed message out.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.federated.envelope import SCHEMA, Envelope, schema_of, seal, write_time
from confide.federated.keys import SiloKeys, refuse_served, remember
from confide.federated.plan import AnyPlan, FederatedPlan
from confide.federated.policy import Policy
from confide.federated.refusals import Refusal
from confide.federated.several_plans import read_plan
from confide.federated.silo_ledger import SiloLedger
from confide.scores import named_by
from confide.support import Name, library_versions, tell

Scores = ArrayLike | ScoreHistogram | Mapping[Any, ArrayLike | ScoreHistogram]
"""Scores, their counts over the candidates of a plan; for groups the counts of each by its name, for sides either."""


def count_for(plan: AnyPlan, scores: Scores, groups: ArrayLike | None = None) -> NDArray[np.int64]:
    """Counts over the candidates of the plan, int64, shape (m,); for groups, classes or sides shape (asks, m).

    Raises
    ------
    InputError, InputTypeError
        If these are no scores that the plan is for, or `groups` are missing, too many or unknown to it.
    """
    one = plan.asks[0]
    if plan.by == "side":
        if groups is not None or not isinstance(scores, Mapping) or set(scores) != set(plan.names):
            raise InputError("scores", f"must be given for both sides, by the names {' and '.join(plan.names)}")
        rows = [_histogram(ask, scores[name]).counts for name, ask in zip(plan.names, plan.asks, strict=True)]
        if rows[0].sum() != rows[1].sum():
            raise InputError("scores", "must be of the same records for both sides", got="other numbers of them")
        return np.array(rows)
    if plan.by is None or plan.by == "level":
        if groups is not None or isinstance(scores, Mapping):
            raise InputError("groups", "must be left out: the plan has no thresholds for groups or classes")
        return _histogram(one, scores).counts
    names: tuple[Name, ...] = plan.names
    if isinstance(scores, Mapping):
        if groups is not None or set(scores) != set(names):
            raise InputError(
                "scores", f"must be counted for the {len(names)} groups of the plan, by their names, without groups"
            )
        return np.array([_histogram(one, scores[name]).counts for name in names])
    if groups is None or isinstance(scores, ScoreHistogram):
        what = "the class" if plan.by == "class" else "the group"
        raise InputError("groups", f"must be given, {what} of each score: the plan has a threshold for each")
    _check_named(one, scores)
    array = as_vector("scores", scores, empty=True)
    refuse_other_rows(scores=scores, groups=groups)
    place = as_positions("groups", groups, names, len(array))
    ScoreHistogram.from_scores(array, one.candidates, one.score)  # names a bad score by its place among all of them
    return np.array([_histogram(one, array[place == i]).counts for i in range(len(names))])


def _histogram(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> ScoreHistogram:
    _check_named(plan, scores)
    if not isinstance(scores, ScoreHistogram):
        return ScoreHistogram.from_scores(scores, plan.candidates, plan.score)
    if scores.candidates != plan.candidates:
        raise InputTypeError("scores", "must be counted over the candidates of the plan", got="others")
    return scores


def _check_named(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> None:
    try:
        named_by(scores, plan.score, plan.classes)
    except InputError as error:
        raise InputError("scores", f"must be those that the plan is for: {error}") from None


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
    """Answer a plan once; asked again, return the same message.

    The plan is checked first, then the scores are counted, then the loss is charged durably in the silo's ledger, then
    the mechanism runs, and the message is stored there before it is returned. Two processes that are asked for the same
    plan at once return the same message: the second waits for the first.

    Parameters
    ----------
    plan
        The signed plan, or several plans under one signature: then this is one message for all of them.
    scores
        The silo's conformity scores, shape (n,), or a histogram of them over the plan's candidates; for groups or
        classes also one histogram for each, by its name; for two sides the scores, or a histogram, of each by the names
        `cqr_low` and `cqr_high`.
    keys
        The silo's private keys.
    policy
        What the silo agrees to.
    ledger
        Its budget ledger, which remembers answers and charges them.
    groups
        Where the plan has a threshold for each group or class: that of each score, shape (n,).
    now
        The present time, with a time zone; by default the clock.

    Returns
    -------
    str
        A signed JSON message: the index of one candidate for each plan, a masked vector, or sealed shares.

    Warns
    -----
    OtherDataWarning
        If the plan was answered before, and the scores are others now: the old message is returned all the same.

    Raises
    ------
    Refusal
        With a code of `confide.federated.refusals`. Whether a silo refuses may depend on its data only where a score is
        invalid (`InputError`); that text must not travel.
    """
    time = now or datetime.now(UTC)
    read, envelope = read_plan(plan)
    own = invited(read, keys, ledger)
    policy.check(read, envelope.signer, own)
    cost = ledger.cost(read, own)
    policy.check_cost(read, cost)
    drawn: list[str] = []

    def look() -> NDArray[np.int64]:
        refuse_served(keys.memory, read.session)
        if read.closed(time):
            raise Refusal("late", "the plan is closed; ask for a new one")
        if ledger.has_opened(read):
            raise Refusal("late", "this silo has helped to open the sum of the others; ask for a new plan")
        counts = count_for(read, scores, groups)
        counted = int(counts.sum()) // (len(counts) if read.by == "side" else 1)
        if read.silos[own].size not in (None, counted):
            raise Refusal("size-differs", "the silo does not have the number of records that the plan states")
        remember(keys.memory, ledger.ledger, charged=False)
        return counts

    def draw(counts: NDArray[np.int64]) -> str:
        remember(keys.memory, ledger.ledger, charged=True)
        context = f"{read.session}|{read.digest}".encode()
        content = {
            "plan": read.digest,
            "session": read.session,
            "silo": keys.name,
            "answered": write_time(time),
            **_drawn_with(read, envelope),
            **read.message(own, counts, keys.agreement, context),
        }
        drawn.append(seal("answer", content, keys.signing))
        return drawn[0]

    def look_again() -> bytes:
        return _seen_again(read, scores, groups)

    message = ledger.pay_answer(read, cost, policy.budget, look, _seen, draw, look_again=look_again)
    if drawn:
        tell("federated", "answered", silo=keys.name, session=read.session, plan=read.digest)
    return message


def invited(plan: AnyPlan, keys: SiloKeys, ledger: SiloLedger) -> int:
    """The place of a silo in a plan that names it with its keys, and with its ledger if any; else `not-invited`.

    Keys that name a ledger answer with no other, whatever the plan says.

    Two copies of the keys with a ledger each would answer a plan twice. Under masks, which follow from keys and
    session, the two messages differ by what the data differ by.
    """
    me = keys.face().identity
    for i, silo in enumerate(plan.silos):
        if silo.identity == me:
            if silo.ledger is not None and silo.ledger != ledger.identity:
                raise Refusal(
                    "not-invited",
                    "the plan names another ledger of this silo than this one; answer with that ledger, or issue the "
                    "public file with this one and ask for a new plan",
                )
            if keys.ledger is not None and keys.ledger != ledger.identity:
                raise Refusal(
                    "not-invited",
                    "these keys name another ledger than this one; answer with that ledger, or name this one with "
                    "`confide federated public --ledger` and ask for a new plan",
                )
            return i
    raise Refusal("not-invited", "the plan does not name this silo with its keys; send your public file again")


def _drawn_with(plan: AnyPlan, envelope: Envelope) -> dict[str, Any]:
    """The versions that draw the answer; not to a coordinator that may be of version 0.1, which could not read it."""
    known = plan.by is not None or schema_of(envelope.content) > SCHEMA
    return {"versions": dict(library_versions())} if known else {}


def _seen(counts: NDArray[np.int64]) -> bytes:
    """What the mechanism sees; the candidates are those of the plan."""
    return counts.astype("<i8").tobytes()


def _seen_again(plan: AnyPlan, scores: Scores, groups: ArrayLike | None) -> bytes:
    """The same where an answer is kept already, so that scores which cannot be used are others and no error."""
    try:
        return _seen(count_for(plan, scores, groups))
    except (InputError, InputTypeError):
        return b""
