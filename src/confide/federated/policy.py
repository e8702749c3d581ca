"""A silo's policy: the coordinator, the methods and the privacy budget that it accepts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confide.federated.keys import check_name, fingerprint
from confide.federated.messages import PREFIX, read_file, write_file
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import METHODS
from confide.federated.refusals import Refusal
from confide.ledger import Cost, is_hexadecimal
from confide.support import positive_integer, privacy_loss, read_text, require, write_text

# The methods that a policy allows by default; both are private
DEFAULT_METHODS = ("private-qq", "secure-sum")


@dataclass(frozen=True)
class Policy:
    """The rules by which a silo answers plans.

    Parameters
    ----------
    coordinator
        The identity of the coordinator (`Silo.identity`), or its Ed25519 public key alone. Plans that others signed
        are rejected.
    budget
        Maximum total privacy loss of all releases about the silo's records, answers and others. It sets no limit in
        the ledger: you can raise or lower it at any time.
    per_plan
        Maximum charge for one answer. The charge is the plan's loss under the adjacency of the silo's ledger.
    methods
        Allowed methods. The defaults include private methods only.
    peers
        For `secure-sum` and `fedcp2-qq-sum`: the identity of every silo that may take part, by name, compared over
        another channel.
    least_colluding
        For these methods: minimum number of silos that may collude with the coordinator without reducing the stated
        privacy. Plans that withstand fewer are rejected.

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
        must = "must be the 64 hexadecimal digits of an identity or an Ed25519 public key"
        require("coordinator", is_hexadecimal(self.coordinator, least=64), must)
        privacy_loss("budget", self.budget)
        privacy_loss("per_plan", self.per_plan)
        if self.least_colluding != 0:
            positive_integer("least_colluding", self.least_colluding)
        known = bool(self.methods) and set(self.methods) <= set(METHODS)
        require("methods", known, f"must be among {', '.join(METHODS)}")
        must = "must be identities of 64 hexadecimal digits, by name"
        for name, identity in self.peers.items():
            check_name(name)
            require("peers", is_hexadecimal(identity, least=64), must, remedy="See Silo.identity")

    def check(self, plan: FederatedPlan, own: int, cost: Cost) -> None:
        """Reject a plan that the rules do not allow to the silo at the position `own`, for this `SiloLedger.cost`.

        Raises
        ------
        Refusal
            `coordinator-unknown` or `not-allowed`.
        """
        self.check_coordinator(plan)
        if plan.method not in self.methods:
            raise Refusal("not-allowed", f"the policy does not allow {plan.method!r}; add it to methods to allow it")
        if (colluders := plan.channel.colluders) is not None:
            if colluders < self.least_colluding:
                raise Refusal(
                    "not-allowed",
                    f"the plan withstands a coordinator that colludes with {colluders} of the silos, the policy "
                    f"requires {self.least_colluding}; request a plan that withstands more, or lower least_colluding",
                )
            self._check_peers(plan, own)
        self._check_cost(cost)

    def _check_cost(self, cost: Cost) -> None:
        if cost.epsilon > self.per_plan:
            raise Refusal(
                "not-allowed",
                f"the ledger would charge {cost.epsilon:.6g} for this plan (under {cost.neighbors}), and the policy "
                f"allows {self.per_plan:g} for one plan",
            )

    def check_coordinator(self, plan: FederatedPlan) -> None:
        """Reject a plan that is not signed by the policy's coordinator.

        Raises
        ------
        Refusal
            `coordinator-unknown`.
        """
        if plan.coordinator is None or self.coordinator not in (plan.coordinator.signing, plan.coordinator.identity):
            raise Refusal(
                "coordinator-unknown",
                "the plan is signed with another key than that of the policy's coordinator; request a new plan",
            )

    def _check_peers(self, plan: FederatedPlan, position: int) -> None:
        """All silos except the one at this position must be pinned."""
        for i, silo in enumerate(plan.silos):
            if i == position or (pinned := self.peers.get(silo.name)) == silo.identity:
                continue
            stated = fingerprint(silo.identity)
            why = (
                f"peers must name {silo.name!r}, whose fingerprint in the plan is {stated}; give the public files of "
                "all silos whose fingerprints you have compared (--peers FOLDER)"
            )
            if pinned is not None:
                why = (
                    f"{silo.name!r} has the fingerprint {stated} in the plan and {fingerprint(pinned)} in the policy; "
                    "ask that silo which one is correct"
                )
            raise Refusal("not-allowed", why)

    def to_json(self) -> str:
        """The policy as JSON text."""
        return write_file("policy", {**vars(self), "peers": dict(self.peers)})

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        write_text(path, self.to_json(), overwrite=True)

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy written by `save` or by hand."""
        return cls.from_json(read_text(path))

    @classmethod
    def from_json(cls, text: str) -> "Policy":
        """The inverse of `to_json`.

        Raises
        ------
        Refusal
            `malformed`.
        """
        return read_file("policy", text, cls, f"the file must have kind {PREFIX + 'policy'!r}")
