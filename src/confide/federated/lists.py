"""The list of a session: whose answers are summed, and which: a silo with a restored ledger may have two."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from confide.errors import InputError
from confide.federated.envelope import digest
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import DealtVectors
from confide.federated.protocols.dealt import read_ephemeral
from confide.federated.refusals import Refusal

Counted: TypeAlias = tuple[tuple[str, str], ...]
"""The names of silos, sorted, and the fresh public keys of their answers."""


def read_counted(plan: FederatedPlan, pairs: Sequence[Any]) -> Counted:
    """A list of silos of the plan, sorted and each once, as many as the plan asks for.

    Raises
    ------
    Refusal
        `malformed`, `foreign` or `too-few`.
    """
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise Refusal("malformed", "the list must hold pairs of a name and a key")
    names = [name for name, _ in pairs]
    if names != sorted(set(names)):
        raise Refusal("malformed", "the list must name each silo once, sorted")
    known = {silo.name for silo in plan.silos}
    if not known.issuperset(names):
        raise Refusal("foreign", "the list names silos that the plan does not name")
    if len(names) < (least := opened_sum(plan).least(plan)):
        raise Refusal("too-few", f"the list must have at least {least} silos; found {len(names)}")
    return tuple((name, read_ephemeral(key)) for name, key in pairs)


def list_digest(plan: FederatedPlan, counted: Counted) -> str:
    """What parts of the same list have in common."""
    return digest([plan.digest, [list(pair) for pair in counted]])


def opened_sum(plan: FederatedPlan) -> DealtVectors:
    """The protocol of a plan whose answers are listed and opened."""
    if not isinstance(plan.protocol, DealtVectors):
        raise InputError(
            "plan must be for the method 'secure-sum' or 'fedcp2-qq-sum' with dropouts; others have no second message"
        )
    return plan.protocol
