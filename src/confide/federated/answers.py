"""The answers of silos: made by a silo, for a charge in its ledger; checked by the coordinator, one for each silo."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.candidates import Candidates
from confide.core import SIDES
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.federated.keys import SiloKeys, check_name
from confide.federated.messages import Form, Message, read_content, read_message, read_time, sign, write_time
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.policy import Policy
from confide.federated.refusals import Refusal, listed
from confide.federated.silo_ledger import SiloLedger, update_checkpoint
from confide.federated.terms import Counts
from confide.ledger import is_hexadecimal
from confide.scores import name_of_scores
from confide.support import Name, check_version_texts, library_versions, log_event, require


class Sending(Form):
    """A silo's answer: the plan's digest, the silo's name, the time, the versions of its libraries, the message."""

    plan: str
    silo: str
    answered: str
    versions: dict[str, str]
    sent: list[int]


# In a silo

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
        _check_size(parsed, position, counts)
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=False)
        return counts

    def draw(counts: Counts) -> str:
        nonlocal is_new
        is_new = True
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=True)
        return _drawn(parsed, position, counts, keys, time)

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
    # One row of counts
    if plan.by is None or plan.by == "level":
        if groups is not None or isinstance(scores, Mapping):
            raise InputError("groups", "must be left out: the plan has no thresholds for groups or classes")
        return _counts(plan, scores)

    # Two sides; or groups or classes, by name
    if plan.by == "side" or isinstance(scores, Mapping):
        return _counts_by_name(plan, scores, groups)

    # Groups or classes: the group of each score
    names: tuple[Name, ...] = plan.names
    if groups is None or isinstance(scores, ScoreHistogram):
        what = "the class" if plan.by == "class" else "the group"
        raise InputError("groups", f"must state {what} of each score: the plan has a threshold for each")
    # An error about a score states its position among all scores
    _counts(plan, scores)
    array = as_vector("scores", scores, empty=True)
    refuse_other_rows(scores=scores, groups=groups)
    positions = as_positions("groups", groups, names, len(array))
    return np.array([_counts(plan, array[positions == i]) for i in range(len(names))])


def _counts_by_name(plan: FederatedPlan, scores: Scores, groups: ArrayLike | None) -> Counts:
    """Counts of both sides, which have the same records, or of all groups or classes."""
    must = f"must be counts by name for the {len(plan.names)} groups of the plan, without groups"
    if plan.by == "side":
        must = f"must be given for both sides, by the names {' and '.join(SIDES)}"
    if groups is not None or not isinstance(scores, Mapping) or set(scores) != set(plan.names):
        raise InputError("scores", must)
    counts = np.array([_counts(plan, scores[name], part) for part, name in enumerate(plan.names)])
    if plan.by == "side":
        must = "must be of the same records for both sides"
        require("scores", counts[0].sum() == counts[1].sum(), must, got="different numbers of scores")
    return counts


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


def _check_size(plan: FederatedPlan, position: int, counts: Counts) -> None:
    """Raise unless the silo has the number of records that the plan states, if it states one."""
    records = int(counts.sum()) // (len(counts) if plan.by == "side" else 1)
    if plan.silos[position].size not in (None, records):
        raise Refusal("size-differs", "the silo does not have the number of records that the plan states")


def _drawn(plan: FederatedPlan, position: int, counts: Counts, keys: SiloKeys, time: datetime) -> str:
    """The signed message of a silo, drawn once. `counts` has shape (m,), for groups and sides (parts, m)."""
    rows = counts if counts.ndim == 2 else [counts] * len(plan.drawn)
    vectors = np.array([single.draw(position, row) for single, row in zip(plan.drawn, rows, strict=True)])
    context = f"{plan.session}|{plan.digest}".encode()
    content = Sending(
        plan=plan.digest,
        silo=keys.name,
        answered=write_time(time),
        versions=dict(library_versions()),
        sent=plan.channel.encode(plan.first, position, vectors, keys.agreement, context),
    )
    return sign("answer", content, keys.signing)


# At the coordinator


class Answer(NamedTuple):
    """An accepted message. The reply has the index of a candidate for each threshold, or is a masked vector."""

    silo: int
    reply: Any
    digest: str
    text: str


def read_answers(
    plan: FederatedPlan, answers: Sequence[str], drop_refused: bool
) -> tuple[dict[int, Answer], dict[str | int, str]]:
    """The answers by position in the plan, and the codes of messages left out, by silo or number of the message.

    Raises
    ------
    Refusal
        For the first message that cannot be used, unless such messages are dropped.
    """
    accepted: dict[int, Answer] = {}
    refused: dict[str | int, str] = {}
    # A copy of a message counts once, with the number of the first one
    numbers = dict[str, int]()
    for number, text in enumerate(answers, start=1):
        numbers.setdefault(text, number)
    for text, number in numbers.items():
        try:
            answer = read_answer(plan, text)
            name = plan.silos[answer.silo].name
            if answer.silo in accepted and accepted[answer.silo].digest == answer.digest:
                continue
            # Of two different answers of a silo neither counts
            if answer.silo in accepted or name in refused:
                accepted.pop(answer.silo, None)
                raise _of_silo(name, "duplicate")
            accepted[answer.silo] = answer
        except Refusal as refusal:
            if not drop_refused:
                raise
            refused[number if refusal.silo is None else refusal.silo] = refusal.code
    return accepted, refused


def read_answer(plan: FederatedPlan, text: str) -> Answer:
    """Check one message against the plan.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `foreign`, `late` or `out-of-range`.
    """
    # From a silo of this plan, by its key
    stated, signer, digest, _ = read_message("answer", text, Sending)
    if stated.plan != plan.digest:
        raise Refusal("foreign", "the answer belongs to another plan")
    i = plan.position(stated.silo)
    if signer != plan.silos[i].signing:
        raise Refusal("foreign", f"the answer of {stated.silo!r} is signed with another key than the plan names")

    # In time, and what the plan asks for
    check_versions("answer", stated.versions)
    try:
        if plan.closed(read_time(stated.answered)):
            raise Refusal("late")
        reply = plan.channel.decode(plan.first, stated.sent, len(plan.drawn))
    except Refusal as refusal:
        raise _of_silo(stated.silo, refusal.code) from None
    return Answer(i, reply, digest, text)


def add(plan: FederatedPlan, answers: Iterable[Answer]) -> Counts:
    """The sum of the vectors that silos sent, shape (draws, m).

    Raises
    ------
    Refusal
        `missing` for too few answers, `implausible` for a sum that the vectors of honest silos cannot have.
    """
    replies = {answer.silo: answer.reply for answer in answers}
    total = plan.channel.add(plan.first, replies, len(plan.drawn))
    if not plan.channel.single_replies:
        for single, row in zip(plan.drawn, total, strict=True):
            single.check_total(sorted(replies), row)
    return total


def _of_silo(silo: str, code: str) -> Refusal:
    return Refusal(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo", silo)


def check_versions(kind: str, versions: Mapping[str, str]) -> None:
    """Check that the versions in a message are texts that a page may show; raises `malformed`."""
    read_content(kind, lambda: check_version_texts("versions", versions))


def sorted_refusals(refused: Mapping[str | int, str]) -> tuple[tuple[str | int, str], ...]:
    """Messages left out: silos by their names, then the numbers of messages without a silo."""
    return tuple(sorted(refused.items(), key=lambda pair: (isinstance(pair[0], int), pair[0])))


def message_head(text: str) -> Message[Sending]:
    """Read a silo's answer without its plan, for example to sort files; only the plan shows whether its key is genuine.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    message = read_message("answer", text, Sending)
    if not is_hexadecimal(message.content.plan, least=64):
        raise Refusal("malformed", "an answer must state the digest of its plan")
    read_content("answer", lambda: check_name(message.content.silo))
    read_time(message.content.answered)
    check_versions("answer", message.content.versions)
    return message


# Replies of single silos


def replies(plan: str, answers: Sequence[str], *, drop_refused: bool = False) -> dict[str, float]:
    """The candidate that each silo replied, by name, the lowest first; empty for methods that open only a sum.

    The threshold is one of these replies. The replies are private if the method is. IID silos have similar replies, but
    a few replies prove nothing (docs/federated.md, Non-IID silos).

    Parameters
    ----------
    plan, answers, drop_refused
        The arguments of `aggregate`, which may raise the same `Refusal`.
    """
    parsed = read_plan(plan)
    if _replied_candidates(parsed) is None:
        return {}
    accepted, _ = read_answers(parsed, answers, drop_refused)
    return replies_of(parsed, accepted)


def replies_of(plan: FederatedPlan, accepted: Mapping[int, Answer]) -> dict[str, float]:
    """The candidate that each silo replied, from answers that were read."""
    if (candidates := _replied_candidates(plan)) is None:
        return {}
    replied = {plan.silos[i].name: float(candidates.values[answer.reply[0]]) for i, answer in accepted.items()}
    return dict(sorted(replied.items(), key=lambda pair: pair[1]))


def _replied_candidates(plan: FederatedPlan) -> Candidates | None:
    """The candidates of the replies; None for sums and for several thresholds."""
    return plan.candidates if plan.by is None and plan.channel.single_replies else None


# A factor between replies, and the largest number of silos that a warning names
_FAR = 100
_SHOWN = 5


def distant_replies(plan: FederatedPlan, replies: Mapping[str, float]) -> str | None:
    """A warning about silos whose replies differ from the median reply by a factor of 100; None without such silos.

    This is a rule of thumb and no test, because replies do not show the shape of scores. For residuals of any common
    shape, from uniform to exponential, the median and the 0.999 quantile differ by a factor of at most 10. So
    replies of IID silos hardly differ by 100, unless a silo has so few records that its noise goes beyond them. Scores
    from 0 to 1, such as probabilities, are left out: IID silos may reply any small numbers.

    Parameters
    ----------
    plan
        The plan, read.
    replies
        The silos' replies by name: see `replies`.
    """
    finite = {name: reply for name, reply in replies.items() if math.isfinite(reply)}
    candidates = _replied_candidates(plan)
    if candidates is None or candidates.edges[-1] <= 1 or len(finite) < 2 or min(finite.values()) <= 0:
        return None
    middle = median_low(finite.values())
    far = {name: reply for name, reply in finite.items() if not middle / _FAR < reply < middle * _FAR}
    if not far:
        return None
    distant = listed([f"{name!r} ({reply:.6g})" for name, reply in far.items()], _SHOWN)
    return (
        f"replies of {distant} differ from the median reply, {middle:.6g}, by a factor of {_FAR} or more; replies "
        "of IID silos hardly differ so much, and the coverage guarantee assumes IID silos. Compare their units, their "
        "model and their numbers of records"
    )
