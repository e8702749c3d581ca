"""Protocols in which every silo runs a mechanism on its own counts and replies with one of the candidates."""

import math
from abc import abstractmethod
from typing import Any, Protocol

from confide.federated.protocols.protocol import Counts, FederatedProtocol
from confide.federated.refusals import Refusal
from confide.federated.terms import Terms
from confide.support import Fields


class CountMechanism(Protocol):
    """Counts over the candidates to one of them."""

    def choose(self, counts: Counts) -> int:
        """The index of a candidate, from counts of shape (m,)."""
        ...


class CandidateReplies(FederatedProtocol):
    """One candidate from each silo: its index, and the candidate itself for people and as a check."""

    @abstractmethod
    def mechanism(self, terms: Terms, i: int) -> CountMechanism:
        """What silo i runs on its counts."""

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The index and the value of a candidate, `"+inf"` for infinity."""
        chosen = self.mechanism(terms, own).choose(counts)
        return {"candidate": chosen, "threshold": _json_value(terms, chosen)}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> int:
        """The index of the candidate that silo i replied."""
        chosen: int = fields.take("candidate", int)
        stated = fields.take("threshold", (float, int, str))
        if not 0 <= chosen < terms.candidates.size or stated != _json_value(terms, chosen):
            raise Refusal("out-of-range")
        return chosen


def _json_value(terms: Terms, chosen: int) -> float | str:
    value = float(terms.candidates.values[chosen])
    return value if math.isfinite(value) else "+inf"
