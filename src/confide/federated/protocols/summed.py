"""What the two forms of secure-sum have in common: `SecureSum` opens with everybody at once, `OpenedSum` by openers."""

from abc import abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.added import AddedVectors
from confide.federated.terms import Terms
from confide.support import float_above

_DRAWS = 1000


class SummedProtocol(AddedVectors):
    """Counts with shares of noise, of which only the sum opens; `scale` is that of the noise that may be relied on."""

    method = "secure-sum"
    theorem = "Theorems F6 and F6b"
    serves = "; 30 to 400 serve best"
    populations = ("mixture", "common")

    scale: float

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also that a training-conditional promise is for alike silos."""
        super().check(terms)
        if terms.delta is not None and terms.population == "mixture":
            raise InputError("delta needs population='common': the training-conditional promise is for i.i.d. records")

    def target_rank(self, i: int) -> None:
        """Silos have none: the target is one for the sum."""

    def loss(self, terms: Terms, i: int) -> float:
        """A replaced record changes two counts by one."""
        return float_above(Fraction(2) / Fraction(self.scale))

    @abstractmethod
    def aim(self, terms: Terms) -> int | None:
        """The target rank among all records if all silos answer; None for +inf."""

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """By draws of the counts of all silos, and of all their noise."""
        n, size, target = terms.size or 0, len(below), self.aim(terms)
        if target is None:
            return np.append(np.zeros(size - 1), 1.0)
        shares, p = len(terms.silos) / self.honest(terms), -np.expm1(-1 / self.scale)
        noise = rng.negative_binomial(shares, p, (_DRAWS, size)) - rng.negative_binomial(shares, p, (_DRAWS, size))
        counts = rng.multinomial(n, np.diff(below, prepend=0.0), _DRAWS) + noise
        above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1] - counts
        chosen = np.argmax(n - above >= target, axis=1)
        law: NDArray[np.float64] = np.bincount(chosen, minlength=size) / _DRAWS
        return law
