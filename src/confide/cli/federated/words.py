"""What the files of a federation say, as rows of two columns: the same words and digits wherever they are printed."""

from collections.abc import Mapping

from confide.federated import MessageHead, Policy, RoundHead, Silo, fingerprint
from confide.support import versions_text


def silo_rows(silo: Silo) -> list[tuple[str, str]]:
    """Who it is, by the digits that people compare, and what its own key signed."""
    size = "secret" if silo.size is None else f"{silo.size}, public"
    ledger = [] if silo.ledger is None else [("ledger", fingerprint(silo.ledger, groups=4))]
    issued = [] if silo.issued is None else [("issued", f"{silo.issued}, signed by its own key")]
    return [("name", silo.name), ("fingerprint", fingerprint(silo.identity)), ("records", size), *ledger, *issued]


def policy_rows(policy: Policy) -> list[tuple[str, str]]:
    """What a silo agrees to."""
    peers = [(f"peer {name}", fingerprint(identity)) for name, identity in policy.peers.items()]
    return [
        ("coordinator", fingerprint(policy.coordinator)),
        ("budget", f"{policy.budget:g} in all, {policy.per_plan:g} for one answer"),
        ("methods", ", ".join(policy.methods)),
        ("colluding silos", f"at least {policy.least_colluding} must be withstood by plans of sums"),
        *peers,
    ]


def answer_rows(head: MessageHead) -> list[tuple[str, str]]:
    """Whose answer it is, to which plan, and when it was made."""
    return [
        ("silo", head.silo),
        ("answered", head.answered),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", f"{head.signer} (aggregate checks that it is the silo's key)"),
        ("made with", versions_text(head.versions)),
    ]


def round_rows(head: RoundHead) -> list[tuple[str, str]]:
    """Whose sum is opened, by whom."""
    return [
        ("opener", head.opener),
        ("on the list", f"{head.listed} silos"),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", head.signer),
    ]


def spread(replies: Mapping[str, float]) -> str | None:
    """From where to where silos replied: all that the replies say about whether they are alike."""
    if len(replies) < 2:
        return None
    (lowest, low), *_, (highest, high) = replies.items()
    return f"replies: from {low:.6g} ({lowest}) to {high:.6g} ({highest}); silos that are alike reply about alike"
