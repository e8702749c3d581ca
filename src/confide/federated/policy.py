"""What a silo agrees to, decided by the silo alone: whom it answers, with what, for how much."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confide.errors import InputError
from confide.federated.envelope import fields_of, read_file
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import METHODS
from confide.federated.refusals import Refusal
from confide.support import positive_integer, privacy_loss, read_text

KIND = "confide.federated.policy"


@dataclass(frozen=True)
class Policy:
    """A silo's standing rules.

    Parameters
    ----------
    coordinator
        The coordinator's Ed25519 public key: plans signed by another are refused.
    budget
        Total privacy loss that all releases about the silo's records together may cost, answers and others.
    per_plan
        Largest loss of one answer.
    methods
        Methods that are allowed; those that are not private are not among the defaults.
    peers
        For `secure-sum`: the X25519 public key of every silo that may take part, by name, pinned out of band.
    least_honest
        For `secure-sum`: least number of silos that the noise may rely on.

    Examples
    --------
    >>> Policy("00" * 32, budget=2.0, per_plan=1.0).methods
    ('private-qq', 'secure-sum')
    """

    coordinator: str
    budget: float
    per_plan: float
    methods: tuple[str, ...] = ("private-qq", "secure-sum")
    peers: Mapping[str, str] = field(default_factory=dict)
    least_honest: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.coordinator, str) or len(self.coordinator) != 64:
            raise InputError("coordinator must be the 64 hexadecimal digits of an Ed25519 public key")
        privacy_loss("budget", self.budget)
        privacy_loss("per_plan", self.per_plan)
        positive_integer("least_honest", self.least_honest)
        if not self.methods or not set(self.methods) <= set(METHODS):
            raise InputError(f"methods must be among {', '.join(METHODS)}")

    def check(self, plan: FederatedPlan, signer: str, own: int) -> None:
        """Refuse a plan, signed by `signer`, that the rules do not allow; the silo's place in it is `own`.

        Raises
        ------
        Refusal
            `coordinator-unknown` or `not-allowed`.
        """
        if signer != self.coordinator:
            raise Refusal("coordinator-unknown", "the plan is signed by another key than the policy pins")
        if plan.method not in self.methods:
            raise Refusal("not-allowed", f"the policy does not allow the method {plan.method!r}")
        if plan.protocol.private and plan.loss(own) > self.per_plan:
            raise Refusal("not-allowed", f"the plan costs more than the {self.per_plan:g} that the policy allows")
        if (honest := plan.protocol.honest(plan)) is not None:
            if honest < self.least_honest:
                raise Refusal("not-allowed", "the plan's noise relies on fewer honest silos than the policy asks for")
            for i, silo in enumerate(plan.silos):
                if i != own and self.peers.get(silo.name) != silo.agreement:
                    raise Refusal("not-allowed", f"the policy does not pin this key of the silo {silo.name!r}")

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        content = {"kind": KIND, **vars(self), "peers": dict(self.peers)}
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy written by `save` or by hand."""
        content = read_file("policy", read_text(Path(path)), "policy", f"the file must have kind {KIND!r}")
        with fields_of("policy", content) as fields:
            return cls(
                fields.take("coordinator", str),
                float(fields.take("budget", (int, float))),
                float(fields.take("per_plan", (int, float))),
                tuple(str(method) for method in fields.take("methods", list)),
                fields.take("peers", dict),
                fields.take("least_honest", int),
            )
