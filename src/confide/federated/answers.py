"""The answers of silos, as the coordinator reads them: checked against the plan, one for each silo."""

import math
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from confide.candidates import Candidates
from confide.federated.keys import check_name
from confide.federated.messages import Form, Message, read_content, read_message, read_time
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.refusals import Refusal, listed
from confide.ledger import is_hexadecimal
from confide.support import check_version_texts


class Sending(Form):
    """A silo's answer: the plan's digest, the silo's name, the time, the versions of its libraries, the message."""

    plan: str
    silo: str
    answered: str
    versions: dict[str, str]
    sent: list[int]


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
        reply = plan.read_message(stated.sent)
    except Refusal as refusal:
        raise _of_silo(stated.silo, refusal.code) from None
    return Answer(i, reply, digest, text)


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
