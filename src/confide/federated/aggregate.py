"""What runs at the coordinator: a plan and the messages in, a calibration certified for those who answered out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from confide.calibration import library_versions
from confide.federated.calibration import FederatedCalibration
from confide.federated.envelope import fields_of, read_time, unseal
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal


class Answer(NamedTuple):
    """A message that was accepted: the silo's place in the plan, and a candidate's index or a masked vector."""

    silo: int
    reply: Any


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
            i, reply = read_answer(read, text)
            if i in accepted or read.silos[i].name in refused:
                accepted.pop(i, None)
                raise _of_silo(read.silos[i].name, "duplicate")
            accepted[i] = reply
        except Refusal as refusal:
            if not drop_refused:
                raise
            refused[refusal.silo or f"message {number}"] = refusal.code
    who = sorted(accepted)
    k, guarantee = read.certify(who)
    return FederatedCalibration.build(
        threshold=read.protocol.threshold(read, accepted, k),
        guarantee=guarantee,
        plan_text=plan,
        plan=read,
        k=k,
        answered=tuple(read.silos[i].name for i in who),
        refused=tuple(sorted(refused.items())),
        versions=library_versions(),
    )


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
    return Answer(i, reply)


def _of_silo(silo: str, code: str) -> Refusal:
    return Refusal(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo", silo)
