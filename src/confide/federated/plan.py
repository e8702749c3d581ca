"""The plan of a federated calibration: a signed request, from which everything else follows; public, before any data.

Mechanisms, certificates and privacy losses follow from the stated silos, request, method and conditions. Every
participant derives them and compares their digest, so a version of confide that derives anything else raises an error
before a charge.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import msgspec

from confide.candidates import Candidates
from confide.core import (
    ABOUT,
    SIDES,
    By,
    Key,
    Request,
    class_list,
    read_request,
    stated_request,
    unusual,
)
from confide.errors import InputError
from confide.federated.derivation import threshold_plans
from confide.federated.keys import Silo, SiloKeys, fingerprint, roster
from confide.federated.messages import Form, digest, encode, read_content, read_message, read_time, sign
from confide.federated.protocols import METHODS, Certificate, Channel, Promise, ThresholdPlan
from confide.federated.refusals import Refusal
from confide.federated.terms import Federation, Missing, Population
from confide.ledger import MOST_RELEASE
from confide.mechanisms import PrivacyStatement, parallel_composition, sequential_composition
from confide.support import Described, Section, one_of, require

Value = TypeVar("Value")

# Silos times thresholds: a release with all replies stays below the size that readers accept
MOST_REPLIES = 2_000_000

# The names of the arguments of a request that a plan may have
_NAMES = ("alpha", "epsilon", "by", "names", "shares", "score", "classes", "about", "candidates", "neighbors", "delta")


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedPlan(Federation, Described):
    """A request to silos for one threshold, or for several that one message answers, for one charge.

    Build it with `plan`, which describes the parameters.

    Parameters
    ----------
    request
        Levels, groups, classes or sides, privacy loss, score and candidates. Levels decrease.
    session
        Random identifier, used once.
    closes
        UTC time in ISO format after which answers are late, or None.
    coordinator
        Name and keys of the coordinator that signed the plan, stated by `sign`; None before that.

    Attributes
    ----------
    parts
        The plan of each threshold, by its key: a level, group, class or side; None for a single one.
    """

    request: Request = field(hash=False)
    method: str
    session: str
    closes: str | None = None
    coordinator: Silo | None = field(default=None, compare=False)
    parts: Mapping[Key, ThresholdPlan] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # What the plan states
        self._check()
        one_of("method", self.method, METHODS)
        # 128 random bits
        is_session = isinstance(self.session, str) and re.fullmatch("[0-9a-f]{32}", self.session)
        require("session", is_session, "must have 32 hexadecimal digits")
        if self.closes is not None:
            read_time(self.closes)
        if self.by in ("group", "class"):
            _check_groups(self.method, self.silos)
        else:
            must = "must be 'replace_one' if the silos' sizes are public, and else 'add_remove'"
            require("neighbors", self.request.neighbors == self.neighbors, must)

        # What follows from it
        object.__setattr__(self, "parts", threshold_plans(self, self.request, self.method))
        relies = self.colluding is None or not self.channel.single_replies
        must = "belongs to the methods 'secure-sum' and 'fedcp2-qq-sum': the others do not rely on other silos"
        require("colluding", relies, must)

        # Messages and the release stay within the sizes that readers accept
        drawn = len(self.drawn)
        self.first.check_length(drawn)
        are_short = len(self.silos) * drawn <= MOST_REPLIES and 9 * drawn <= MOST_RELEASE
        must = f"the answers of {len(self.silos)} silos to {drawn} thresholds would be too long"
        require("plan", are_short, must, remedy="Plan fewer groups, classes or levels at once")

    # The plans of its thresholds

    @property
    def by(self) -> By | None:
        """What distinguishes the parts: levels, groups, classes or sides; None for one threshold."""
        return self.request.by

    @property
    def single_plans(self) -> Sequence[ThresholdPlan]:
        """The plans of all thresholds."""
        return tuple(self.parts.values())

    @property
    def different(self) -> Sequence[ThresholdPlan]:
        """The different plans of thresholds: that of all groups once. Thresholds of equal terms share one object."""
        return list({id(plan): plan for plan in self.single_plans}.values())

    @property
    def drawn(self) -> Sequence[ThresholdPlan]:
        """The plans for which silos draw a vector: one for all levels of noisy counts, else every one."""
        return self.single_plans[:1] if self.by == "level" and self.first.one_draw else self.single_plans

    def of_each(self, value: Callable[[ThresholdPlan], Value]) -> list[Value]:
        """A value of the plan of every threshold, computed once for thresholds of equal terms."""
        values = {id(plan): value(plan) for plan in self.different}
        return [values[id(plan)] for plan in self.single_plans]

    @property
    def first(self) -> ThresholdPlan:
        """The plan of the first threshold, or of the only one."""
        return self.single_plans[0]

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the thresholds: a level, a group or class, the score of a side, or None."""
        return SIDES if self.by == "side" else tuple(self.parts)

    # What all of them share

    @property
    def channel(self) -> Channel:
        """How the silos' vectors are added, the same for all thresholds."""
        return self.first.channel

    @property
    def candidates(self) -> Candidates:
        """The candidates, the same for all thresholds."""
        return self.first.candidates

    @property
    def derived(self) -> str:
        """The digest of what follows from the request; every participant computes it again."""
        stated = [plan.derived for plan in self.different]
        return digest(json.dumps(stated, default=str, sort_keys=True).encode())

    # Guarantee and privacy

    def certify(self, answered: Collection[int] | None = None) -> Certificate:
        """The certificate of the only threshold, or of the first."""
        return self.first.certify(answered)

    def promises(self) -> dict[int, Promise]:
        """The guarantees of the only threshold, or of the first, by number of answers."""
        return self.first.promises()

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.privacy([i]).epsilon

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record, for all thresholds together: silos hold different records, so that of one silo."""
        # The thresholds that follow from one draw cost it once
        each = self.of_each(lambda plan: plan.privacy(answered))[: len(self.drawn)]
        if self.request.disjoint:
            return parallel_composition(each, self.request.neighbors)
        return each[0] if len(each) == 1 else sequential_composition(each)

    def closed(self, now: datetime) -> bool:
        """Whether answers made at this time are late."""
        return self.closes is not None and now > read_time(self.closes)

    # Files

    @cached_property
    def payload(self) -> bytes:
        """The plan as it is signed."""
        return encode(self._form)

    @property
    def _form(self) -> "_PlanForm":
        stated = {name: getattr(self, name) for name in _PLAIN_FIELDS}
        return _PlanForm(**stated, derived=self.derived, request=_request_fields(self.request))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, which answers state."""
        return digest(self.payload)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.payload,)

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message that names its coordinator. It is read back as every silo will read it.

        Raises
        ------
        InputError
            If silos could not read it, or would read another plan.
        """
        stated = replace(self, coordinator=coordinator.public_keys())
        text = sign("plan", stated._form, coordinator.signing)
        try:
            read_plan(text)
        except Refusal as refusal:
            raise InputError("plan", f"must be readable by silos, which would reject it: {refusal}") from None
        return text

    # Descriptions: the same wherever a plan is printed

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The request, its privacy loss and its guarantee as (name, value) rows."""
        request = self.request
        size = "secret" if self.size is None else "public"
        rows = [
            ("method", self.method),
            ("score", " and ".join(SIDES) if self.by == "side" else self.first.score or "not stated"),
            ("requested", self._requested),
            ("privacy of an answer", str(self.privacy())),
            ("candidate thresholds", self.candidates.description),
            ("silos", f"{len(self.silos)}, their numbers of records {size}"),
            *self.first.trust_rows,
        ]
        if request.classes is not None:
            rows.append(("classes", class_list(request.classes)))
        rows += [(ABOUT[key], text) for key, text in request.about.items()]
        return [*rows, ("answers until", self.closes or "any time"), ("session", self.session), ("plan", self.digest)]

    @property
    def _requested(self) -> str:
        if self.by == "level":
            return "coverage " + " and ".join(f"{float(1 - level):g}" for level in self.parts)
        if self.by == "side":
            covered = 1 - sum(plan.alpha for plan in self.single_plans)
            return f"coverage {float(covered):g} by both sides together"
        first = self.first
        delta = "" if first.delta is None else f", delta {first.delta:g}"
        each = "" if self.by is None else f" for each {self.by} of {class_list(tuple(self.parts))}"
        return f"coverage {float(first.level):g}{delta}{each}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about unusual levels or an unusual total failure probability."""
        failures = [plan.delta or 0.0 for plan in self.different]
        return unusual(min(plan.alpha for plan in self.different), sum(failures) or None)

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees by number of answers: for each of several levels or sides, and once for all groups."""
        named = zip(self.names, self.different, strict=False)
        return [f"{self._subject(name)}{line}" for name, plan in named for line in plan.promise_lines]

    def _subject(self, name: Any) -> str:
        """The threshold, or all thresholds of groups, that a guarantee is about."""
        if self.by == "level":
            return f"alpha {float(name):g}, "
        if self.by == "side":
            return f"{name}, "
        if self.by is None:
            return ""
        return f"each of {len(self.parts)} {'groups' if self.by == 'group' else 'classes'}, "

    def _section(self) -> Section:
        return Section(
            "Plan of a federation",
            "federated plan; reading it costs no privacy budget",
            warnings=self.remarks,
            parts=(Section("", facts=tuple(self.rows)),),
            notes=tuple(f"  {line}" for line in self.promise_lines),
        )

    def _brief(self) -> str:
        rows = dict(self.rows)
        silos = f"{rows['silos'].partition(',')[0]} silos"
        return f"{rows['method']}, {rows['requested']}, {silos}, each answer: {rows['privacy of an answer']}"


# The message of a plan


class _PlanForm(Form):
    """The fields of a plan in its message; `derived` is the digest of what follows from the others."""

    silos: tuple[Silo, ...]
    coordinator: Silo | None
    request: dict[str, Any]
    method: str
    liars: int
    dropouts: int
    missing: Missing
    population: Population
    colluding: int | None
    n_min: int
    n_typical: int
    session: str
    closes: str | None
    derived: str


# The fields that are written as the plan has them
_PLAIN_FIELDS = tuple(name for name in _PlanForm.__struct_fields__ if name not in ("request", "derived"))


@lru_cache(maxsize=16)
def read_plan(text: str) -> FederatedPlan:
    """Read a signed plan, and derive what follows from it.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    # Signed by the coordinator that it names
    stated, signer, *_ = read_message("plan", text, _PlanForm)
    if stated.coordinator is None or any(silo.signature is None for silo in stated.silos):
        raise Refusal("malformed", "the plan must name its coordinator and contain signed silos; request the original")
    if stated.coordinator.signing != signer:
        raise Refusal("altered", "the plan is signed with another key than its coordinator's; request the original")

    # The same follows from it here as at the coordinator
    plan = read_content("plan", lambda: _plan_of(stated))
    if plan.derived != stated.derived:
        why = "other mechanisms follow from the plan here than at its coordinator; use the same version of confide"
        raise Refusal("malformed", why)
    if plan.payload != encode(stated):
        raise Refusal("malformed", "the plan is not the text that confide writes for its content; request the original")
    return plan


def _plan_of(stated: _PlanForm) -> FederatedPlan:
    is_known = stated.request.keys() <= set(_NAMES)
    require("request", is_known, f"must have no other arguments than {', '.join(_NAMES)}")
    fields_of_plan = {name: getattr(stated, name) for name in _PLAIN_FIELDS}
    return FederatedPlan(**fields_of_plan, request=read_request(stated.request))


def _unpickled(payload: bytes) -> FederatedPlan:
    return _plan_of(msgspec.json.decode(payload, type=_PlanForm))


def _request_fields(request: Request) -> dict[str, Any]:
    """The arguments of a request as JSON values, with the values of your own candidates."""
    stated = stated_request(request)
    candidates = request.candidates
    if isinstance(candidates, Candidates) and not candidates.is_built:
        stated["candidates"] = {"kind": "of", "values": candidates.edges.tolist()}
    return stated


def _check_groups(method: str, silos: Iterable[Silo]) -> None:
    """Groups and classes need a method that keeps their numbers of records secret."""
    must = (
        "must be 'private-qq' for groups and classes: the numbers of records of each stay secret, and the "
        f"certificate of {method!r} needs them"
    )
    require("method", method == "private-qq", must)
    must = "must keep their sizes secret where groups or classes have thresholds of their own"
    remedy = "Issue public files without a size: SiloKeys.public(), or confide federated public"
    require("silos", all(silo.size is None for silo in silos), must, remedy=remedy)


def identity_rows(plan: FederatedPlan, *, silos: bool) -> list[tuple[str, str]]:
    """The fingerprints of coordinator and silos, and one number for all of them, if the plan states them."""
    if plan.coordinator is None:
        return []
    rows = [(f"coordinator {plan.coordinator.name}", fingerprint(plan.coordinator.identity))]
    if silos:
        for silo in plan.silos:
            records = "" if silo.size is None else f", {silo.size} records"
            rows.append((f"silo {silo.name}", fingerprint(silo.identity) + records))
        rows += [("roster, all of them", roster_number([plan.coordinator, *plan.silos]))]
    return rows


def roster_number(participants: Iterable[Silo]) -> str:
    """One number for coordinator and silos, longer than that of a single participant (`fingerprint`)."""
    return fingerprint(roster(participants), groups=12)
