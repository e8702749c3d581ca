"""The silos of a federated calibration: the state of each, its privacy cost, and its answer if it is given."""

import math
from collections.abc import Sequence

from confide.core import Release
from confide.errors import InputError
from confide.federated import CODES, FederatedRelease, FederatedThreshold, distant_replies, read_answers, replies_of
from confide.reports.words import number, say
from confide.support import Section, Table


def silos(release: Release, answers: Sequence[str]) -> Section | None:
    """Section about the silos; None for a calibration without silos. Answers must give the released threshold."""
    # Answers can be shown for one threshold.
    if not isinstance(release, FederatedRelease):
        if answers:
            raise InputError("answers", "must be left out: the calibration is not federated")
        return None
    if answers and release.by is not None:
        raise InputError("answers", "must be left out: the calibration has several thresholds")

    # One row for each silo, and for each message of a sender that is not in the plan.
    plan, refused = release.plan, dict(release.refused)
    asks, replies = plan.different, _replies(release, answers)
    rows = []
    for i, silo in enumerate(plan.silos):
        targets = dict.fromkeys(ask.protocol.target_rank(i) for ask in asks)
        rank = "; ".join("in the sum" if target is None else number(float(target)) for target in targets)
        state = f"left out: {CODES[refused[silo.name]]}" if silo.name in refused else "did not answer"
        state = "answered" if silo.name in release.answered else state
        size = "secret" if silo.size is None else f"{silo.size:,}"
        answer = number(replies[silo.name]) if silo.name in replies else ""
        rows.append((silo.name, size, rank, number(plan.loss(i)), state, answer))
    known = {silo.name for silo in plan.silos}
    rows += [
        ("unknown sender", "", "", "", f"left out: {CODES[why]}", "")
        for name, why in release.refused
        if name not in known
    ]

    # What was sent; replies that are far from each other indicate silos that are not IID.
    sent = say("silos", "single" if plan.channel.single_replies else "sum")
    lead = f"{len(release.answered)} of {len(plan.silos)} silos answered. {sent}"
    table = Table(("Silo", "Records", "Target rank", "ε", "State", "Answer"), tuple(rows), "The silos of the plan")
    far = distant_replies(plan, replies)
    return Section("The silos", lead, tables=(table,), warnings=(f"{far[0].upper()}{far[1:]}.",) if far else ())


def _replies(release: FederatedRelease, answers: Sequence[str]) -> dict[str, float]:
    # They give the released threshold, or are some of those that count.
    accepted, _ = read_answers(release.plan, answers, drop_refused=False)
    replies, threshold = replies_of(release.plan, accepted), release.first
    assert isinstance(threshold, FederatedThreshold)
    if replies and set(replies) == set(release.answered):
        ordered = [*replies.values(), math.inf]
        if ordered[min(threshold.k, len(replies) + 1) - 1] != release.threshold:
            raise InputError("answers", "must be those of this threshold; these give another threshold")
    elif not set(replies) <= set(release.answered):
        raise InputError("answers", "must come from silos with counted answers; some silos were left out")
    return replies
