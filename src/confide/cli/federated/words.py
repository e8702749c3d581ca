"""What the files of a federation say, as rows of two columns: the same words and digits wherever they are printed."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TypeAlias

from confide.federated import (
    FederatedPlan,
    MessageHead,
    OpenedSum,
    Policy,
    Promise,
    RoundHead,
    SeveralPlans,
    Silo,
    fingerprint,
    roster,
)
from confide.releases import ABOUT, class_list

AnyPlan: TypeAlias = FederatedPlan | SeveralPlans


def silo_rows(silo: Silo) -> list[tuple[str, str]]:
    """Who it is, by the digits that people compare, and what its own key signed."""
    size = "secret" if silo.size is None else f"{silo.size}, public"
    issued = [] if silo.issued is None else [("issued", f"{silo.issued}, signed by its own key")]
    return [("name", silo.name), ("fingerprint", fingerprint(silo.identity)), ("records", size), *issued]


def identity_rows(plan: AnyPlan, *, silos: bool) -> list[tuple[str, str]]:
    """The fingerprints of coordinator and silos, and one number for all of them, as far as the plan states them."""
    if plan.coordinator is None:
        return []
    rows = [(f"coordinator {plan.coordinator.name}", fingerprint(plan.coordinator.identity))]
    if silos:
        rows += [(f"silo {silo.name}", fingerprint(silo.identity) + _records(silo)) for silo in plan.silos]
        rows += [("roster, all of them", roster_number([plan.coordinator, *plan.silos]))]
    return rows


def roster_number(everybody: Iterable[Silo]) -> str:
    """One number for coordinator and silos, longer than that of one of them: see `confide.federated.fingerprint`."""
    return fingerprint(roster(everybody), groups=12)


def _records(silo: Silo) -> str:
    return "" if silo.size is None else f", {silo.size} records"


def colluders(plan: AnyPlan) -> str | None:
    """How many colluding silos the privacy of an answer withstands; None if it relies on no other silo."""
    count = plan.protocol.colluders
    if count is None:
        return None
    who = f"at most {count} of the {len(plan.silos)} silos" if count else "no silo"
    return f"{who} may collude with the coordinator"


def openers(plan: AnyPlan) -> str | None:
    """Who opens the sum by a second message; None if there is none."""
    if not isinstance(plan.protocol, OpenedSum):
        return None
    return f"{plan.protocol.needed} of {len(plan.protocol.openers)} silos, by a second message that costs nothing"


def promise_lines(plan: AnyPlan) -> list[str]:
    """What is promised for the numbers of answers; for each of several levels, and once for all groups."""
    if isinstance(plan, SeveralPlans):
        if plan.by != "level":
            each = "groups" if plan.by == "group" else "classes"
            return [f"each of {len(plan.parts)} {each}, {line}" for line in promise_lines(plan.first)]
        return [f"alpha {float(a):g}, {line}" for a, part in plan.parts.items() for line in promise_lines(part)]
    return [f"{answers} answer{'' if answers == '1' else 's'}: {words}" for answers, words in ranges(plan.promises())]


def ranges(promises: Mapping[int, Promise]) -> Iterator[tuple[str, str]]:
    """Numbers of answers, the many first, for which the same words are said."""
    for words, numbers in groupby(promises, key=lambda answers: _promised(promises[answers])):
        most, *others = numbers
        yield f"{others[-1]} to {most}" if others else f"{most}", words


def _promised(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}" if promise.coverage else "no coverage is promised"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")


def plan_rows(plan: AnyPlan) -> list[tuple[str, str]]:
    """What a silo is asked, what it pays and what is promised."""
    if isinstance(plan, SeveralPlans):
        return _several_rows(plan)
    size = "public" if plan.silos[0].size is not None else "secret"
    rows = [
        ("method", plan.method),
        ("score", plan.score or "not stated"),
        ("asked for", f"coverage {float(plan.level):g}" + ("" if plan.delta is None else f", delta {plan.delta:g}")),
        (
            "a silo pays at most",
            str(plan.privacy()) if plan.protocol.private else "everything: its answer is not private",
        ),
        ("candidate thresholds", plan.candidates.description),
        ("silos", f"{len(plan.silos)}, their numbers of records {size}"),
        ("may be missing", f"{plan.dropouts}; " + _MISSING[plan.missing]),
        ("may lie", str(plan.liars)),
        ("promised", plan.assumed or "nothing"),
    ]
    if (collude := colluders(plan)) is not None:
        rows.append(("privacy relies on", f"the other silos: {collude}"))
    if (opened := openers(plan)) is not None:
        rows.append(("the sum is opened by", opened))
    if plan.classes is not None:
        rows.append(("classes", class_list(plan.classes)))
    rows += [(ABOUT[key].lower(), text) for key, text in plan.about.items()]
    return [*rows, ("answers until", plan.closes or "any time"), ("session", plan.session), ("plan", plan.digest)]


def _several_rows(plans: SeveralPlans) -> list[tuple[str, str]]:
    """Those of the first plan, but for what is asked, what all together cost, and the digest of all."""
    rows = dict(plan_rows(plans.first))
    rows["plan"] = plans.digest
    if plans.protocol.private:
        rows["a silo pays at most"] = str(plans.privacy())
    if plans.by == "level":
        rows["asked for"] = "coverage " + " and ".join(f"{float(1 - level):g}" for level in plans.parts)
    else:
        rows["asked for"] += f" for each {plans.by} of {class_list(tuple(plans.parts))}"
    return list(rows.items())


_MISSING = {
    "independent": "whether a silo answers must not depend on its scores",
    "arbitrary": "whether a silo answers may depend on its scores",
}


def policy_rows(policy: Policy) -> list[tuple[str, str]]:
    """What a silo agrees to."""
    peers = [(f"peer {name}", fingerprint(identity)) for name, identity in policy.peers.items()]
    return [
        ("coordinator", fingerprint(policy.coordinator)),
        ("budget", f"{policy.budget:g} in all, {policy.per_plan:g} for one answer"),
        ("methods", ", ".join(policy.methods)),
        ("colluding silos", f"at least {policy.least_colluding} must be withstood by plans of secure-sum"),
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
