"""What runs at the coordinator: a plan and the messages in, a calibration certified for those who answered out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confide.calibration import library_versions
from confide.federated.calibration import FederatedCalibration
from confide.federated.clock import read_time
from confide.federated.envelope import fields_of, unseal
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal

REFUSED_NAME = "message {}"


@dataclass(frozen=True)
class Answer:
    """A message that was accepted.

    Parameters
    ----------
    silo
        Place of the silo in the plan.
    reply
        What it sent, in the form of the plan's protocol: the index of a candidate, or a masked vector.
    """

    silo: int
    reply: Any


class AnswerRefusal(Refusal):
    """A refusal of a message whose signature was good, so that its silo is known."""

    def __init__(self, silo: str, code: str) -> None:
        self.silo = silo
        super().__init__(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo")


def aggregate(plan: str, answers: Sequence[str], *, drop_refused: bool = False) -> FederatedCalibration:
    """Make the threshold from the answers of the silos that answered.

    Parameters
    ----------
    plan
        The signed plan.
    answers
        The messages.
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
    accepted: dict[int, Any] = {}
    refused: dict[str, str] = {}
    for number, text in enumerate(answers, start=1):
        try:
            one = read_answer(read, text)
            if one.silo in accepted or read.silos[one.silo].name in refused:
                accepted.pop(one.silo, None)
                raise AnswerRefusal(read.silos[one.silo].name, "duplicate")
            accepted[one.silo] = one.reply
        except Refusal as refusal:
            if not drop_refused:
                raise
            name = refusal.silo if isinstance(refusal, AnswerRefusal) else REFUSED_NAME.format(number)
            refused[name] = refusal.code
    return _conclude(plan, read, accepted, refused)


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
        raise (AnswerRefusal(signed, refusal.code) if signed else refusal) from None
    return Answer(i, reply)


def _conclude(text: str, plan: FederatedPlan, replies: dict[int, Any], refused: dict[str, str]) -> FederatedCalibration:
    who = sorted(replies)
    k, guarantee = plan.certify(who)
    return FederatedCalibration.build(
        threshold=plan.protocol.threshold(plan, replies, k),
        guarantee=guarantee,
        plan_text=text,
        plan=plan,
        k=k,
        answered=tuple(plan.silos[i].name for i in who),
        refused=tuple(sorted(refused.items())),
        versions=library_versions(),
    )
