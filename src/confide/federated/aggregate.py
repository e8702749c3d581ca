"""What runs at the coordinator: a plan and the messages in, a calibration certified for those who answered out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.calibration.calibrate import library_versions
from confide.federated.calibration import FederatedCalibration
from confide.federated.clock import read_time
from confide.federated.envelope import take, unseal
from confide.federated.masking import open_sum
from confide.federated.plan import FederatedPlan
from confide.federated.protocols.secure_sum import choose_summed
from confide.federated.refusals import Refusal

REFUSED_NAME = "message {}"


@dataclass(frozen=True)
class Answer:
    """A message that was accepted.

    Parameters
    ----------
    silo
        Place of the silo in the plan.
    candidate
        Index of the candidate it replied, or None.
    masked
        Its masked vector, or None.
    """

    silo: int
    candidate: int | None
    masked: NDArray[Any] | None


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
    accepted: dict[int, Answer] = {}
    refused: dict[str, str] = {}
    for number, text in enumerate(answers, start=1):
        try:
            one = read_answer(read, text)
            if one.silo in accepted or read.silos[one.silo].name in refused:
                accepted.pop(one.silo, None)
                raise _Named(read.silos[one.silo].name, "duplicate")
            accepted[one.silo] = one
        except Refusal as refusal:
            if not drop_refused:
                raise
            name = refusal.silo if isinstance(refusal, _Named) else REFUSED_NAME.format(number)
            refused[name] = refusal.code
    return conclude(plan, read, accepted, refused)


def conclude(
    text: str, plan: FederatedPlan, accepted: dict[int, Answer], refused: dict[str, str]
) -> FederatedCalibration:
    """The calibration from accepted answers."""
    who = sorted(accepted)
    k, guarantee = plan.certify(who)
    if plan.method == "secure-sum":
        absent = [silo.name for i, silo in enumerate(plan.silos) if i not in accepted]
        if absent:
            names = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise Refusal(
                "missing",
                f"a secure sum opens with all its silos or not at all; {len(absent)} have not answered: {names}; wait "
                "for them, or make a new plan without them, for which the others pay again",
            )
        total = open_sum([vector for i in who if (vector := accepted[i].masked) is not None], plan.bits)
        chosen = choose_summed(total, plan.size or 0, int(plan.targets[0]))
        threshold = float(plan.candidates.values[chosen])
    elif not accepted:
        raise Refusal("missing", "no silo has answered; wait, or make a new plan")
    elif plan.method == "fedcp-avg":
        threshold = float(np.mean([plan.candidates.values[accepted[i].candidate or 0] for i in who]))
    else:
        chosen = kth_reply(plan, [accepted[i].candidate or 0 for i in who], k)
        threshold = float(plan.candidates.values[chosen])
    return FederatedCalibration.build(
        threshold=threshold,
        guarantee=guarantee,
        plan_text=text,
        plan=plan,
        k=k,
        answered=tuple(plan.silos[i].name for i in who),
        refused=tuple(sorted(refused.items())),
        versions=library_versions(),
    )


def kth_reply(plan: FederatedPlan, replies: Sequence[int], k: int) -> int:
    """The index of the k-th smallest of the candidates replied; that of +inf if there are not so many."""
    return sorted(replies)[k - 1] if k <= len(replies) else plan.candidates.size - 1


def read_answer(plan: FederatedPlan, text: str) -> Answer:
    """Check one message against the plan.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `foreign`, `late` or `out-of-range`.
    """
    envelope = unseal("answer", text)
    content = envelope.content
    payload = "masked" if plan.method == "secure-sum" else "candidate"
    name = take(content, "silo", str, "answer")
    if content.get("plan") != plan.digest or content.get("session") != plan.session:
        raise Refusal("foreign", "the answer belongs to another plan")
    i = plan.position(name)
    if envelope.signer != plan.silos[i].signing:
        raise Refusal("foreign", f"the answer of {name!r} is signed by another key than the plan names")
    wanted = {"plan", "session", "silo", "answered", payload} | ({"threshold"} if payload == "candidate" else set())
    if set(content) != wanted:
        raise _Named(name, "malformed")
    if plan.closed(read_time(take(content, "answered", str, "answer"))):
        raise _Named(name, "late")
    if payload == "candidate":
        chosen = take(content, "candidate", int, "answer")
        if not 0 <= chosen < plan.candidates.size:
            raise _Named(name, "out-of-range")
        value = float(plan.candidates.values[chosen])
        stated = content["threshold"]
        if stated != ("+inf" if math.isinf(value) else value) or isinstance(stated, bool):
            raise _Named(name, "out-of-range")
        if math.isinf(value) and _never_infinite(plan, i):
            raise _Named(name, "out-of-range")
        return Answer(i, chosen, None)
    vector = take(content, "masked", list, "answer")
    if len(vector) != plan.candidates.size or not all(type(v) is int and 0 <= v < 2**plan.bits for v in vector):
        raise _Named(name, "malformed")
    return Answer(i, None, np.array(vector, dtype=np.uint64).astype(f"<u{plan.bits // 8}"))


def _never_infinite(plan: FederatedPlan, i: int) -> bool:
    """fedcp-avg takes a mean: an infinite reply is refused unless the plan itself asks for a rank above n."""
    return plan.method == "fedcp-avg" and plan.targets[i] <= (plan.silos[i].size or 0)


class _Named(Refusal):
    """A refusal of a message whose signature was good, so that its silo is known."""

    def __init__(self, silo: str, code: str) -> None:
        self.silo = silo
        super().__init__(code, f"the answer of {silo!r} cannot be used ({code}); ask that silo")
