"""The part of a share holder (opener): the sum of its shares of the answers on a list, for one list per session."""

import base64

from confide.federated.answer import silo_position
from confide.federated.answers import message_head
from confide.federated.keys import SiloKeys, update_checkpoint
from confide.federated.messages import sign
from confide.federated.openings import Opened, Opening, list_digest, read_opening, shared_channel
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.policy import Policy
from confide.federated.protocols import SharedAnswer
from confide.federated.refusals import Refusal
from confide.federated.sharing import Elements, add, decrypt_share, pack
from confide.federated.silo_ledger import SiloLedger


def open_part(plan: str, opening: str, keys: SiloKeys, policy: Policy, ledger: SiloLedger) -> str:
    """Help to open the sum of the silos on a list. A repeated call with this list returns the same message.

    It needs no records and has no privacy cost: the sum that opens includes noise and was charged in the silos on the
    list. The list is in the ledger, on disk, before the part is returned, and no other list of the session is opened. A
    silo that has not answered may help, and can then no longer answer.

    Parameters
    ----------
    plan
        The signed plan.
    opening
        The coordinator's text for this silo, from `openings`.
    keys
        The silo's private keys.
    policy
        The silo's policy, of which only the coordinator is checked.
    ledger
        The silo's budget ledger.

    Returns
    -------
    str
        A signed JSON message, for `aggregate`.

    Raises
    ------
    Refusal
        With a code of `confide.federated.refusals`; `unreadable` names the silo whose share cannot be decrypted.
    """
    read = read_plan(plan)
    own = silo_position(read, keys, ledger)
    policy.check_coordinator(read)
    if own not in shared_channel(read).openers:
        raise Refusal("not-invited", "the plan does not name this silo as a share holder")
    asked = read_opening(read, opening)
    _refuse_foreign(read, asked, keys, ledger)
    listed = list_digest(read, asked.counted)

    def look() -> Elements:
        total = _summed(read, asked, own, keys)
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=False)
        return total

    def draw(total: Elements) -> str:
        update_checkpoint(keys.checkpoint, ledger.ledger, charged=True)
        places = tuple(read.position(name) for name, _ in asked.counted)
        packed = base64.b64encode(pack(total)).decode()
        return sign("part", Opened(read.digest, keys.name, listed, places, packed), keys.signing)

    return ledger.store_part(read, listed, look, draw)


def _refuse_foreign(plan: FederatedPlan, asked: Opening, keys: SiloKeys, ledger: SiloLedger) -> None:
    """Reject an opening for another share holder, or one that lists an answer that this silo has not given."""
    if asked.to != keys.name:
        raise Refusal("foreign", f"the opening is for {asked.to[:64]!r}; use the one with this silo's name")
    if (named := dict(asked.counted).get(keys.name)) is not None:
        message = ledger.kept_answer(plan)
        sent = None if message is None else message_head(message).content.sent
        if not isinstance(sent, SharedAnswer) or sent.ephemeral != named:
            raise Refusal("foreign", "the list counts an answer of this silo that is not in its ledger")


def _summed(plan: FederatedPlan, asked: Opening, own: int, keys: SiloKeys) -> Elements:
    context = f"{plan.session}|{plan.digest}".encode()
    total: Elements | None = None
    for (name, ephemeral), text in zip(asked.counted, asked.shares, strict=True):
        dealer = plan.silos[plan.position(name)].agreement
        try:
            share = decrypt_share(
                text, plan.width, plan.silos[own].agreement, keys.agreement, dealer, ephemeral, context
            )
        except ValueError:
            raise Refusal(
                "unreadable",
                f"the share of {name!r} cannot be decrypted; ask the coordinator, who can list the answers without it "
                "if no share holder has sent a part yet",
                name,
            ) from None
        total = share if total is None else add(total, share)
    assert total is not None  # a list has more silos than may collude
    return total
