"""What the two forms of secure-sum have in common: `SecureSum` opens with everybody at once, `OpenedSum` by openers."""

from fractions import Fraction

from confide.errors import InputError
from confide.federated.protocols.protocol import FederatedProtocol
from confide.federated.terms import Terms
from confide.support import float_above

MOST_SUMMED = 2**14
"""Candidates of a secure sum: its messages have a number for each."""


class SummedProtocol(FederatedProtocol):
    """Counts with shares of noise, of which only the sum opens; `scale` is that of the noise that may be relied on."""

    method = "secure-sum"
    theorem = "Theorems F6 and F6b"
    withstands_liars = False
    relies_on_silos = True
    populations = ("mixture", "common")

    scale: float
    colluding: int

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also at least two silos, and not too many candidates."""
        super().check(terms)
        if len(terms.silos) < 2:
            raise InputError("silos must be at least two for the method 'secure-sum'")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError(
                f"candidates must number at most {MOST_SUMMED} for the method 'secure-sum'; 50 to 100 serve best"
            )
        if terms.delta is not None and terms.population == "mixture":
            raise InputError("delta needs population='common': the training-conditional promise is for i.i.d. records")

    @property
    def colluders(self) -> int:
        """Stated by the plan, and checked by every silo's policy."""
        return self.colluding

    def target_rank(self, i: int) -> None:
        """Silos have none: the target is one for the sum."""

    def loss(self, terms: Terms, i: int) -> float:
        """A replaced record changes two counts by one."""
        return float_above(Fraction(2) / Fraction(self.scale))
