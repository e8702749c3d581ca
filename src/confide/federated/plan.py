"""The plan of a federated calibration: public, signed, computed before any data is seen.

It fixes what every silo will run, down to the last integer, so that a silo can state its privacy loss and anybody the
coverage for whichever silos answer. `planning.py` makes plans, `plan_json.py` writes and reads them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confide.federated.envelope import Envelope, digest, seal, unseal
from confide.federated.keys import SiloKeys
from confide.federated.plan_json import Unused, plan_fields, read_plan_fields
from confide.federated.protocols import FederatedProtocol, Promise
from confide.federated.terms import Terms
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement


@dataclass(frozen=True)
class FederatedPlan(Terms):
    """Everything public about a federated calibration: who, when, what is promised (see `Terms`), and one protocol.

    Build it with `plan`.

    Parameters
    ----------
    protocol
        What every silo runs and sends, and what becomes of it: one of `confide.federated.protocols`.
    unused
        Fields that a plan states although its protocol does not have them: they mean nothing but belong to its digest.
    """

    protocol: FederatedProtocol
    unused: Unused = ()

    @property
    def method(self) -> str:
        """The name of the protocol."""
        return self.protocol.method

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: answers name it."""
        return digest(self.fields())

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.protocol.loss(self, i)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        return self.protocol.privacy(self, self._who(answered))

    def certify(self, answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
        """Which of the answers becomes the threshold, and what is promised, for the silos that answered.

        Parameters
        ----------
        answered
            Positions of the silos that answered; by default all.

        Returns
        -------
        k, guarantee
            The k-th smallest of all answers, liars' answers included; if k exceeds their number the threshold is
            +inf. k = 0 for methods that do not sort replies.
        """
        return self.protocol.certify(self, self._who(answered))

    def promises(self) -> dict[int, Promise]:
        """What is promised for every number of answers, from all silos down to one.

        Returns
        -------
        dict
            number of answers -> `Promise`. Methods that need all silos have that one number only.
        """
        return self.protocol.promises(self)

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return plan_fields(self, self.protocol, self.unused)

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message."""
        return seal("plan", self.fields(), coordinator.signing)

    @classmethod
    def of(cls, terms: Terms, protocol: FederatedProtocol, unused: Unused = ()) -> "FederatedPlan":
        """Terms and a protocol for them."""
        return cls(**vars(terms), protocol=protocol, unused=unused)

    @classmethod
    def from_fields(cls, content: Mapping[str, Any]) -> "FederatedPlan":
        """The inverse of `fields`.

        Raises
        ------
        Refusal
            `malformed`.
        """
        return cls.of(*read_plan_fields(content))

    @classmethod
    def read(cls, text: str) -> tuple["FederatedPlan", Envelope]:
        """A signed plan, and who signed it.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        envelope = unseal("plan", text)
        return cls.from_fields(envelope.content), envelope

    def _who(self, answered: Collection[int] | None) -> list[int]:
        return sorted(range(len(self.silos)) if answered is None else set(answered))
