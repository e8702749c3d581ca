"""A sum without everybody: openers help to open the sum of those who answered, whoever these are.

Every silo deals Shamir shares of its vector, sealed to the openers (message 1). The coordinator signs one list
of answers, and each opener returns the sum of the shares that it holds of those on the list (message 2); `needed` parts
open the sum, and nothing else ever opens. An opener helps to open one list per session; with 3 needed > 2 K + c that is
enough whatever lists are told to whom (docs/federated.md, Theorem S1).
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple, NoReturn

from confide.errors import InputError
from confide.federated.protocols.added import AddedVectors
from confide.federated.protocols.plan_fields import refuse_contradiction
from confide.federated.protocols.protocol import Counts, Options
from confide.federated.refusals import Refusal
from confide.federated.sealed_shares import seal_shares
from confide.federated.shamir import deal
from confide.federated.terms import Terms, check_count
from confide.support import Fields

MOST_OPENERS = 64
MOST_ELEMENTS = 2**16
"""Openers times candidates: an answer stays below the million characters that a ledger keeps."""
MOST_LISTED = 2**19
"""Silos times candidates: what is asked of an opener stays below the millions of characters that are read."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Dealt(NamedTuple):
    """The first message of a silo: which answer it is (the fresh public key), and a sealed share for every opener."""

    ephemeral: str
    shares: list[str]


class DealtVectors(AddedVectors):
    """It opens with the parts of `needed` of the openers; at most `dropouts` silos may be missing from the list."""

    openers: tuple[int, ...]
    needed: int

    def refuse_openers(self, terms: Terms) -> None:
        """Refuse openers of which so few would open more than one sum, and what `refuse_terms` refuses."""
        k = len(self.openers)
        refuse_contradiction(list(self.openers) != sorted(set(self.openers)) or not 1 <= k <= MOST_OPENERS)
        refuse_contradiction(not least_needed(k, self.colluding) <= self.needed <= k)
        self.refuse_terms(terms)

    def refuse_terms(self, terms: Terms) -> None:
        """Refuse more missing silos than can be done without, and messages that are too long."""
        m, k = len(terms.silos), len(self.openers)
        if self.least(terms) < self.needed:
            raise InputError(
                f"dropouts must be at most {max(m - self.needed, 0)} for {m} silos of which {self.colluding} may "
                f"collude: {self.needed} of {k} silos must help to open the sum; of 4 silos and fewer nobody can be "
                "done without if one may collude: use dropouts=0, or the method 'private-qq'"
            )
        most = min(MOST_ELEMENTS // k, MOST_LISTED // m)
        if terms.candidates.size > most:
            raise InputError(
                f"candidates must number at most {most} for the method {self.method!r} with dropouts, {m} silos and "
                f"{k} openers; found {terms.candidates.size}{self.serves}"
            )

    def least(self, terms: Terms) -> int:
        """The least number of silos on a list."""
        return len(terms.silos) - terms.dropouts

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Refuse a list of fewer silos than it needs."""
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")

    def honest(self, terms: Terms) -> int:
        """The silos of the shortest list that do not collude."""
        return self.least(terms) - self.colluding

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """Shares of the vector, each sealed to its opener."""
        values = self.addend(terms, own, counts)
        shares = deal(values, len(self.openers), self.needed)
        openers = [terms.silos[i].agreement for i in self.openers]
        ephemeral, sealed = seal_shares(shares, openers, terms.silos[own].agreement, agreement, context)
        return {"ephemeral": ephemeral, "shares": sealed}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> Dealt:
        """A fresh public key and a sealed share for every opener; whether these open, the openers will see."""
        return Dealt(read_ephemeral(fields.take("ephemeral", str)), self.read_shares(terms, fields, len(self.openers)))

    def read_shares(self, terms: Terms, fields: Fields, count: int) -> list[str]:
        """So many sealed shares, each of the one length that they have."""
        shares: list[str] = fields.take("shares", list)
        length = 4 * ceil((8 * terms.candidates.size + 16) / 3)
        if len(shares) != count or not all(isinstance(text, str) and len(text) == length for text in shares):
            raise Refusal("malformed", "sealed shares must be texts of one length, as many as the plan says")
        return shares

    def threshold(self, terms: Terms, replies: Mapping[int, Any], k: int) -> NoReturn:
        """The answers alone do not tell it; `choose` does."""
        raise Refusal(
            "missing",
            f"the answers open with the parts of {self.needed} of the plan's {len(self.openers)} openers: list the "
            "answers, send every opener its file, and give the parts",
        )


def choose_openers(terms: Terms, options: Options) -> tuple[int, tuple[int, ...], int]:
    """How many silos may collude, which open, and how many must: the largest ones open, as few of them as is safe."""
    largest = by_size(terms)
    openers = tuple(sorted(largest[:MOST_OPENERS]))
    k = len(openers)
    colluding = max(1, k // 3) if options.colluding is None else check_count("colluding", options.colluding, k - 1)
    return colluding, openers, least_needed(k, colluding)


def by_size(terms: Terms) -> list[int]:
    """The places of the silos, the largest ones first."""
    return sorted(range(len(terms.silos)), key=lambda i: (-(terms.silos[i].size or 0), i))


def least_needed(openers: int, colluding: int) -> int:
    """The fewest parts that may open a sum: 3 needed > 2 openers + colluding (Theorem S1).

    Examples
    --------
    >>> [least_needed(k, c) for k, c in ((5, 1), (7, 3), (10, 3), (50, 16))]
    [4, 6, 8, 39]
    """
    return (2 * openers + colluding) // 3 + 1


def read_ephemeral(text: Any) -> str:
    """The public key that names an answer."""
    if not isinstance(text, str) or not _KEY.fullmatch(text):
        raise Refusal("malformed", "an answer must be named by a key of 64 hexadecimal digits")
    return text
