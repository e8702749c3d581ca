"""Whether a federated calibration is what its coordinator made, and whether a silo's own answer is in it.

What follows from the plan was computed again when the calibration was read. This looks at the rest: who signed it, what
the threshold was made from, and which answers count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from confide.federated.answers import read_answer
from confide.federated.calibration import FederatedRelease, first_of, plan_of
from confide.federated.envelope import digest
from confide.federated.keys import Silo
from confide.federated.refusals import Refusal


@dataclass(frozen=True)
class Verification:
    """What was found.

    Parameters
    ----------
    found
        What holds, or was not asked, in words.
    wrong
        What was asked and does not hold, or cannot be told.
    """

    found: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all holds that was asked."""
        return not self.wrong


def verify(released: FederatedRelease, coordinator: Silo | None = None, answers: Sequence[str] = ()) -> Verification:
    """Check who signed a calibration, what its threshold follows from, and that answers are in it.

    Parameters
    ----------
    released
        The calibration, as it was read.
    coordinator
        The coordinator's public face, compared by whoever asks; without it a signature is reported and not judged.
    answers
        Signed answers, of one's own silo for example, that should count.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from confide import federated
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> north = federated.SiloKeys.generate("north")
    >>> plan = federated.plan([north.public(size=300)], 0.1, 2.0, score="lac").sign(coordinator)
    >>> policy = federated.Policy(coordinator.public().identity, budget=4.0, per_plan=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = federated.SiloLedger(f"{folder}/north.db")
    ...     own = federated.answer(plan, np.linspace(0, 1, 300), north, policy, ledger)
    >>> released = federated.aggregate(plan, [own], keys=coordinator)
    >>> verify(released, coordinator.public(), [own]).holds
    True
    """
    found: list[str] = []
    wrong: list[str] = []
    if released.signature is None:
        (found if coordinator is None else wrong).append("not signed: no signature vouches for the threshold")
    elif coordinator is not None and coordinator.signing != first_of(released).signer:
        wrong.append(f"signed by another key than that of {coordinator.name!r}")
    else:
        found.append(
            "signed with the key that signed the plan" if coordinator is None else f"signed by {coordinator.name!r}"
        )
    found.append(_made_from(released))
    for text in answers:
        said, holds = _counts(released, text)
        (found if holds else wrong).append(said)
    return Verification(tuple(found), tuple(wrong))


def _made_from(released: FederatedRelease) -> str:
    if (opened := released.opened) is not None:
        return f"the threshold was made again from {len(opened.parts)} signed parts of openers"
    if any(isinstance(told, dict) for told in released.sent.values()):
        return f"the threshold was made again from {len(released.sent)} signed answers"
    return "the threshold is as the coordinator states it: it cannot be made again from this file"


def _counts(released: FederatedRelease, text: str) -> tuple[str, bool]:
    """What is to be said of an answer, and whether it is in the calibration."""
    first = first_of(released)
    plan = plan_of(released)
    try:
        answer = read_answer(plan, text)
    except Refusal as refusal:
        return f"an answer cannot be used: {refusal}", False
    name = plan.silos[answer.silo].name
    if name not in first.answered:
        why = dict(first.refused).get(name)
        return f"the answer of {name!r} {f'was left out ({why})' if why else 'does not count'}", False
    if released.opened is not None:
        same = answer.reply.ephemeral == dict(released.opened.counted)[name]
    elif name not in released.sent:
        return f"an answer of {name!r} counts, and which cannot be told: {_untold(released)}", False
    else:
        told = released.sent[name]
        same = answer.digest == (told if isinstance(told, str) else digest(told["content"]))
    if not same:
        return f"another answer of {name!r} counts than this one", False
    return f"the answer of {name!r} counts", True


def _untold(released: FederatedRelease) -> str:
    unsigned = "the calibration is not signed"
    return unsigned if released.signature is None else "answers of this method are not private, so none is told"
