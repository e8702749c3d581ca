"""Silos' first messages, read against their plan: which count, and which are left out, and why."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confide.federated.envelope import digest, fields_of, read_time, unseal
from confide.federated.protocols import CandidateReplies
from confide.federated.refusals import Refusal
from confide.federated.several_plans import AnyPlan, SeveralPlans, read_plan
from confide.support import optional_versions


class Answer(NamedTuple):
    """A message that was accepted: the silo's place in the plan, what it replied, and the digest of its content."""

    silo: int
    reply: Any
    digest: str
    text: str


def read_answers(
    plan: AnyPlan, answers: Sequence[str], drop_refused: bool
) -> tuple[dict[int, Answer], dict[str | int, str]]:
    """What every silo sent, by its place in the plan; and the codes of what was left out, by silo or place of text.

    Raises
    ------
    Refusal
        What is wrong with the first message that cannot be used, unless such messages are dropped.
    """
    accepted: dict[int, Answer] = {}
    refused: dict[str | int, str] = {}
    place = {text: number for number, text in reversed(list(enumerate(answers, start=1)))}
    for text, number in sorted(place.items(), key=lambda pair: pair[1]):
        try:
            one = read_answer(plan, text)
            name = plan.silos[one.silo].name
            if one.silo in accepted and accepted[one.silo].digest == one.digest:
                continue
            if one.silo in accepted or name in refused:
                accepted.pop(one.silo, None)
                raise _of_silo(name, "duplicate")
            accepted[one.silo] = one
        except Refusal as refusal:
            if not drop_refused:
                raise
            refused[number if refusal.silo is None else refusal.silo] = refusal.code
    return accepted, refused


def replies(plan: str, answers: Sequence[str], *, drop_refused: bool = False) -> dict[str, float]:
    """The candidate that each silo replied, by name, the lowest first; nothing where messages say nothing alone.

    They are what the threshold is one of, private where the method is. Alike silos reply about alike, but few replies
    prove nothing (docs/federated.md, Silos that are not alike).

    Parameters
    ----------
    plan, answers, drop_refused
        As in `aggregate`.

    Raises
    ------
    Refusal
        As `aggregate`.
    """
    read, _ = read_plan(plan)
    if isinstance(read, SeveralPlans) or not isinstance(read.protocol, CandidateReplies):
        return {}
    accepted, _ = read_answers(read, answers, drop_refused)
    found = {read.silos[i].name: float(read.candidates.values[one.reply]) for i, one in accepted.items()}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def in_order(refused: Mapping[str | int, str]) -> tuple[tuple[str | int, str], ...]:
    """What was left out: silos by their names, then places of messages that are of no silo."""
    return tuple(sorted(refused.items(), key=lambda pair: (isinstance(pair[0], int), pair[0])))


def read_answer(plan: AnyPlan, text: str) -> Answer:
    """Check one message against the plan.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `foreign`, `late` or `out-of-range`.
    """
    envelope, signed = unseal("answer", text), ""
    try:
        with fields_of("answer", envelope.content) as fields:
            name = fields.take("silo", str)
            if [fields.take(part, str) for part in ("plan", "session")] != [plan.digest, plan.session]:
                raise Refusal("foreign", "the answer belongs to another plan")
            i = plan.position(name)
            if envelope.signer != plan.silos[i].signing:
                raise Refusal("foreign", f"the answer of {name!r} is signed by another key than the plan names")
            signed = name
            if plan.closed(read_time(fields.take("answered", str))):
                raise Refusal("late")
            optional_versions(fields)
            reply = plan.read_message(i, fields)
    except Refusal as refusal:
        raise (_of_silo(signed, refusal.code) if signed else refusal) from None
    return Answer(i, reply, digest(envelope.content), text)


def _of_silo(silo: str, code: str) -> Refusal:
    return Refusal(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo", silo)
