"""What a silo agrees to, decided by the silo alone: whom it answers, with what, for how much."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.federated.envelope import PREFIX, fields_of, read_file
from confide.federated.keys import check_name, fingerprint
from confide.federated.plan import AnyPlan
from confide.federated.protocols import METHODS
from confide.federated.refusals import Refusal
from confide.ledger import Cost
from confide.support import positive_integer, privacy_loss, read_text, shapes

DEFAULT_METHODS = ("private-qq", "secure-sum")
"""What a policy allows if it says nothing else; both are private."""

_DIGITS = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Policy:
    """A silo's standing rules.

    Parameters
    ----------
    coordinator
        The identity of the coordinator (`Silo.identity`), or its Ed25519 public key alone: plans signed by another are
        refused.
    budget
        Total privacy loss of all releases about the silo's records, answers and others, beyond which no plan is
        answered. It sets no limit in the ledger: you can raise or lower it at any time.
    per_plan
        The most that one answer may be charged. The charge is the plan's loss under the relation of the silo's ledger.
    methods
        Methods that are allowed; those that are not private are not among the defaults.
    peers
        For `secure-sum` and `fedcp2-qq-sum`: the identity of every silo that may take part, by name, compared out of
        band.
    least_colluding
        For these: with how many silos the coordinator may collude, at least, before an answer is less protected
        than the plan states. Plans that stand fewer are refused.

    Examples
    --------
    >>> Policy("00" * 32, budget=2.0, per_plan=1.0).methods
    ('private-qq', 'secure-sum')
    """

    coordinator: str
    budget: float
    per_plan: float
    methods: tuple[str, ...] = DEFAULT_METHODS
    peers: Mapping[str, str] = field(default_factory=dict)
    least_colluding: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.coordinator, str) or not _DIGITS.fullmatch(self.coordinator):
            raise InputError("coordinator", "must be the 64 hexadecimal digits of an identity or an Ed25519 public key")
        privacy_loss("budget", self.budget)
        privacy_loss("per_plan", self.per_plan)
        if self.least_colluding != 0:
            positive_integer("least_colluding", self.least_colluding)
        if not self.methods or not set(self.methods) <= set(METHODS):
            raise InputError("methods", f"must be among {', '.join(METHODS)}")
        for name, identity in self.peers.items():
            check_name(name)
            if not isinstance(identity, str) or not _DIGITS.fullmatch(identity):
                raise InputError(
                    "peers", "must be identities of 64 hexadecimal digits, by name", remedy="See Silo.identity"
                )

    def check(self, plan: AnyPlan, signer: str, own: int) -> None:
        """Refuse a plan, signed by `signer`, that the rules do not allow; the silo's place in it is `own`.

        `check_cost` then decides whether the plan costs too much.

        Raises
        ------
        Refusal
            `coordinator-unknown` or `not-allowed`.
        """
        self.check_coordinator(plan, signer)
        if plan.method not in self.methods:
            raise Refusal(
                "not-allowed", f"the policy does not allow {plan.method!r}; methods must name it if you want it"
            )
        if (colluders := plan.channel.colluders) is not None:
            if colluders < self.least_colluding:
                raise Refusal(
                    "not-allowed",
                    f"the plan protects from a coordinator that colludes with {colluders} of the silos, the policy "
                    f"asks for {self.least_colluding}; ask for a plan that withstands more, or lower least_colluding",
                )
            self._check_peers(plan, own)

    def check_cost(self, plan: AnyPlan, cost: Cost) -> None:
        """Refuse a private plan whose answer would be charged more than `per_plan`.

        Parameters
        ----------
        plan
            The plan.
        cost
            What the silo's ledger would charge, under its own relation: `SiloLedger.cost`.

        Raises
        ------
        Refusal
            `not-allowed`.
        """
        if plan.protocol.private and cost.epsilon > self.per_plan:
            raise Refusal(
                "not-allowed",
                f"the ledger would charge {cost.epsilon:.6g} for this plan (under {cost.neighbors}), and the policy "
                f"allows {self.per_plan:g} for one",
            )

    def check_coordinator(self, plan: AnyPlan, signer: str) -> None:
        """Refuse a plan that is signed by another than the pinned coordinator.

        Raises
        ------
        Refusal
            `coordinator-unknown`.
        """
        stated = None if plan.coordinator is None else plan.coordinator.identity
        if self.coordinator not in (signer, stated):
            other = "another key than the policy pins" if stated else "a key that the policy does not pin by itself"
            raise Refusal("coordinator-unknown", f"the plan is signed by {other}; ask the coordinator for a new plan")

    def _check_peers(self, plan: AnyPlan, own: int) -> None:
        """Whether all others are pinned, by keys that belong together because their owners signed them."""
        if not plan.signed:
            raise Refusal(
                "not-allowed",
                "the plan's silos are not signed by their own keys, as version 0.1 left them; ask for a new plan",
            )
        for i, silo in enumerate(plan.silos):
            if i == own or (pinned := self.peers.get(silo.name)) == silo.identity:
                continue
            found = fingerprint(silo.identity)
            if pinned is None:
                raise Refusal("not-allowed", f"peers must name {silo.name!r}, whose fingerprint in the plan is {found}")
            raise Refusal(
                "not-allowed",
                f"{silo.name!r} has the fingerprint {found} in the plan and {fingerprint(pinned)} in the policy; ask "
                "that silo which is its own",
            )

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps({"kind": PREFIX + "policy", **shapes.write_shape(self, _SHAPE)}, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy written by `save` or by hand."""
        return cls.from_json(read_text(path))

    @classmethod
    def from_json(cls, text: str) -> "Policy":
        """The inverse of `to_json`.

        A policy of version 0.1 is read if it pins no peers, for then it allows no `secure-sum`. If it pins keys for
        masks it is refused: those keys are not all that a fingerprint covers, and its `least_honest` asked for the
        opposite of `least_colluding`.

        Raises
        ------
        Refusal
            `malformed`.
        """
        content = read_file("policy", text, "policy", f"the file must have kind {PREFIX + 'policy'!r}")
        with fields_of("policy", content) as fields:
            values = shapes.read_shape(fields, _shape(content))
            if values.pop("least_honest", None) is not None and values["peers"]:
                raise Refusal(
                    "malformed",
                    "the policy is of version 0.1, which pinned a part of its peers' keys; make a new one from "
                    "their public files: confide federated policy",
                )
            return cls(**values)


_SHAPE = shapes.shape_of(Policy, peers=shapes.OBJECT)


def _shape(content: Mapping[str, Any]) -> shapes.Shape:
    """The fields of a policy; those of version 0.1 asked for the opposite of `least_colluding`."""
    if "least_honest" not in content:
        return _SHAPE
    kept = {name: field for name, field in _SHAPE.items() if name != "least_colluding"}
    return {**kept, "least_honest": shapes.INTEGER}
