"""What runs at the coordinator: a plan and the messages in, a calibration certified for those who answered out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from confide.calibration import library_versions
from confide.federated.calibration import FederatedCalibration
from confide.federated.envelope import digest, fields_of, read_time, unseal
from confide.federated.parts import open_parts
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal


class Answer(NamedTuple):
    """A message that was accepted: the silo's place in the plan, a candidate's index or a masked vector, its digest."""

    silo: int
    reply: Any
    digest: str


def aggregate(
    plan: str, answers: Sequence[str], *, parts: Sequence[str] = (), drop_refused: bool = False
) -> FederatedCalibration:
    """Make the threshold from the answers of the silos that answered.

    Parameters
    ----------
    plan
        The signed plan.
    answers
        The messages. A copy of a message counts once.
    parts
        For `secure-sum` with dropouts: what the openers sent, of `open_part`. The silos whose answers were listed are
        those that answered; later answers are left out.
    drop_refused
        Leave messages out that are malformed, altered, foreign, late, out of range or contradict another of the same
        silo, and record why, instead of refusing them all. Their silos count as not having answered.

    Returns
    -------
    FederatedCalibration
        Works with `confide.predict_set` and `confide.predict_interval`.

    Raises
    ------
    Refusal
        Naming the message's silo and what is wrong.
    """
    read, _ = FederatedPlan.read(plan)
    accepted, refused = read_answers(read, answers, drop_refused)
    opened = None
    if parts:
        opened, others = open_parts(read, accepted, parts, drop_refused, after=len(answers))
        refused |= others
    who = sorted(accepted) if opened is None else opened.who(read)
    k, guarantee = read.certify(who)
    return FederatedCalibration.build(
        threshold=read.protocol.threshold(read, accepted, k) if opened is None else opened.threshold(read),
        guarantee=guarantee,
        plan_text=plan,
        plan=read,
        k=k,
        answered=tuple(read.silos[i].name for i in who),
        refused=tuple(sorted(refused.items(), key=lambda pair: (isinstance(pair[0], int), pair[0]))),
        versions=library_versions(),
        opened=opened,
    )


def read_answers(
    plan: FederatedPlan, answers: Sequence[str], drop_refused: bool
) -> tuple[dict[int, Any], dict[str | int, str]]:
    """What every silo sent, by its place in the plan; and the codes of what was left out, by silo or place of text."""
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
    return {i: one.reply for i, one in accepted.items()}, refused


def read_answer(plan: FederatedPlan, text: str) -> Answer:
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
            reply = plan.protocol.read_message(plan, i, fields)
    except Refusal as refusal:
        raise (_of_silo(signed, refusal.code) if signed else refusal) from None
    return Answer(i, reply, digest(envelope.content))


def _of_silo(silo: str, code: str) -> Refusal:
    return Refusal(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo", silo)
