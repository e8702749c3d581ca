"""What the coordinator asks of openers: it signs whose answers are summed, and sends each its shares of them."""

from collections.abc import Sequence
from typing import NamedTuple

from confide.errors import InputError
from confide.federated.answers import read_answers
from confide.federated.envelope import fields_of, seal, unseal
from confide.federated.keys import SiloKeys
from confide.federated.lists import Counted, opened_sum, read_counted
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal


class Opening(NamedTuple):
    """What the coordinator asks of one opener: a list, and the opener's sealed shares of the answers on it."""

    to: str
    counted: Counted
    shares: list[str]


def openings(plan: str, answers: Sequence[str], keys: SiloKeys, *, drop_refused: bool = False) -> dict[str, str]:
    """List the answers, and ask every opener for the sum of its shares of them: a signed text by the opener's name.

    Make the list once: an opener helps to open one list per session, and two lists may leave both without enough parts.
    Openers that have not answered are asked as well. Made from the same answers, the texts are the same.

    Parameters
    ----------
    plan
        The signed plan of a sum with dropouts.
    answers
        The messages of the silos.
    keys
        The coordinator's private keys, which signed the plan.
    drop_refused
        As in `aggregate`: leave unusable answers out instead of refusing them all.

    Raises
    ------
    Refusal
        `missing` if fewer silos answered than the plan's list needs, and as `aggregate`.
    InputError
        If the plan has no second message, or other keys signed it.
    """
    read, envelope = FederatedPlan.read(plan)
    protocol = opened_sum(read)
    if keys.public().signing != envelope.signer:
        raise InputError("keys must be those of the coordinator who signed the plan; found others")
    messages, _ = read_answers(read, answers, drop_refused)
    accepted = {i: one.reply for i, one in messages.items()}
    if len(accepted) < protocol.least(read):
        absent = [silo.name for i, silo in enumerate(read.silos) if i not in accepted]
        names = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise Refusal(
            "missing",
            f"a list needs the answers of at least {protocol.least(read)} of {len(read.silos)} silos; found "
            f"{len(accepted)}, without {names}; wait for them, or make a new plan, for which the others pay again",
        )
    order = sorted(accepted, key=lambda i: read.silos[i].name)
    counted = [[read.silos[i].name, accepted[i].ephemeral] for i in order]
    texts = {}
    for place, i in enumerate(protocol.openers):
        content = {
            "plan": read.digest,
            "session": read.session,
            "to": read.silos[i].name,
            "counted": counted,
            "shares": [accepted[j].shares[place] for j in order],
        }
        texts[read.silos[i].name] = seal("opening", content, keys.signing)
    return texts


def addressee(text: str) -> str | None:
    """Whom an opening says that it is for; None if it cannot be read."""
    try:
        return str(unseal("opening", text).content.get("to"))
    except Refusal:
        return None


def read_opening(plan: FederatedPlan, text: str, coordinator: str) -> Opening:
    """Check what the coordinator, named by its signing key, asks of an opener.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `coordinator-unknown`, `foreign` or `too-few`.
    """
    protocol, envelope = opened_sum(plan), unseal("opening", text)
    if envelope.signer != coordinator:
        raise Refusal("coordinator-unknown", "the opening is signed by another key than the plan")
    with fields_of("opening", envelope.content) as fields:
        if [fields.take(part, str) for part in ("plan", "session")] != [plan.digest, plan.session]:
            raise Refusal("foreign", "the opening belongs to another plan")
        to, counted = fields.take("to", str), read_counted(plan, fields.take("counted", list))
        shares = protocol.read_shares(plan, fields, len(counted))
    return Opening(to, counted, shares)
