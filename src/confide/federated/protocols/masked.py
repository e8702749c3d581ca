"""A sum in one message: every silo masks its vector, and the masks cancel when all vectors are added."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.federated.masking import mask, open_sum, word_of
from confide.federated.protocols.added import AddedVectors
from confide.federated.protocols.protocol import Counts
from confide.federated.refusals import Refusal
from confide.federated.terms import Terms
from confide.support import Fields


class MaskedVectors(AddedVectors):
    """It opens with everybody at once; masks are modulo 2**bits."""

    bits: int

    def honest(self, terms: Terms) -> int:
        """The silos that do not collude."""
        return len(terms.silos) - self.colluding

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The vector, masked."""
        values = self.addend(terms, own, counts)
        roster = [silo.agreement for silo in terms.silos]
        return {"masked": mask(values, agreement, roster[own], roster, context, self.bits).tolist()}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> NDArray[Any]:
        """A masked vector."""
        vector = fields.take("masked", list)
        most = 2**self.bits
        if len(vector) != terms.candidates.size or not all(type(v) is int and 0 <= v < most for v in vector):
            raise Refusal("malformed", "a masked vector must hold an integer below 2**bits for every candidate")
        return np.array(vector, dtype=np.uint64).astype(word_of(self.bits))

    def threshold(self, terms: Terms, replies: Mapping[int, NDArray[Any]], k: int) -> float:
        """What the opened sum says, if all silos answered."""
        absent = [silo.name for i, silo in enumerate(terms.silos) if i not in replies]
        if absent:
            names = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise Refusal(
                "missing",
                f"a secure sum opens with all its silos or not at all; {len(absent)} have not answered: {names}; wait "
                "for them, or make a new plan without them, for which the others pay again",
            )
        who, total = range(len(terms.silos)), open_sum(list(replies.values()), self.bits)
        self.refuse_total(terms, who, total)
        return self.choose(terms, who, total)
