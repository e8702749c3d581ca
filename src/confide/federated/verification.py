"""Verify the signature of a federated calibration, the evidence for its threshold, and that answers count.

Everything that follows from the plan was computed again when the calibration was read. `verify` checks the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from confide.federated.answers import read_answer
from confide.federated.calibration import FederatedRelease
from confide.federated.keys import Silo
from confide.federated.refusals import Refusal


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Parameters
    ----------
    statements
        Statements that hold, or that were not requested.
    failures
        Requested statements that do not hold, or that cannot be verified.
    """

    statements: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all requested statements hold."""
        return not self.failures


def verify(released: FederatedRelease, coordinator: Silo | None = None, answers: Sequence[str] = ()) -> Verification:
    """Verify the signer of a calibration, the evidence for its threshold, and that answers count.

    Parameters
    ----------
    released
        The calibration, as it was read.
    coordinator
        The coordinator's public file, whose fingerprint you have compared. Without it a signature is reported only.
    answers
        Signed answers that should count, for example that of your own silo.

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
    ...     answer = federated.answer(plan, np.linspace(0, 1, 300), north, policy, ledger)
    >>> released = federated.aggregate(plan, [answer], keys=coordinator)
    >>> verify(released, coordinator.public(), [answer]).holds
    True
    """
    statements: list[str] = []
    failures: list[str] = []

    # The signer
    if released.signature is None:
        (statements if coordinator is None else failures).append("not signed: no signature vouches for the threshold")
    elif coordinator is None:
        statements.append("signed with the key that signed the plan")
    elif coordinator.signing != released.signer:
        failures.append(f"signed with another key than that of {coordinator.name!r}")
    else:
        statements.append(f"signed by {coordinator.name!r}")

    # The evidence: reading the release has recomputed what its answers show
    if released.plan.channel.single_replies:
        statements.append(f"the threshold was recomputed from {len(released.sent)} signed answers")
    else:
        statements.append("the threshold is stated by the coordinator and cannot be recomputed from this file")

    # The answers that should count
    for text in answers:
        statement, holds = _counts(released, text)
        (statements if holds else failures).append(statement)
    return Verification(tuple(statements), tuple(failures))


def _counts(released: FederatedRelease, text: str) -> tuple[str, bool]:
    """A statement about an answer, and whether the answer counts."""
    plan = released.plan
    try:
        answer = read_answer(plan, text)
    except Refusal as refusal:
        return f"an answer cannot be used: {refusal}", False
    name = plan.silos[answer.silo].name
    if name not in released.answered:
        why = dict(released.refused).get(name)
        return f"the answer of {name!r} {f'was left out ({why})' if why else 'does not count'}", False
    if plan.channel.single_replies:
        same = answer.digest == read_answer(plan, released.sent[name]).digest
    else:
        same = answer.digest == released.sent[name]
    if not same:
        return f"another answer of {name!r} counts than this one", False
    return f"the answer of {name!r} counts", True
