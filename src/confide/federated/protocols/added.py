"""Vectors of integers over the candidates, one of each silo, of which only the sum opens."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.protocol import Counts, FederatedProtocol
from confide.federated.terms import Terms

MOST_SUMMED = 2**14
"""Candidates of a sum: its messages have a number for each."""


class AddedVectors(FederatedProtocol):
    """What a silo adds, and what the sum says; `MaskedVectors` and `DealtVectors` are two ways to open it."""

    withstands_liars = False
    relies_on_silos = True
    serves: ClassVar[str] = ""
    """How many candidates serve best."""

    colluding: int

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also at least two silos, and not too many candidates."""
        super().check(terms)
        if len(terms.silos) < 2:
            raise InputError(f"silos must be at least two for the method {cls.method!r}")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError(f"candidates must number at most {MOST_SUMMED} for the method {cls.method!r}{cls.serves}")

    @property
    def colluders(self) -> int:
        """Stated by the plan, and checked by every silo's policy."""
        return self.colluding

    @abstractmethod
    def honest(self, terms: Terms) -> int:
        """How many silos are sure to be in the sum and not to collude."""

    @abstractmethod
    def addend(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The vector of silo `own`, drawn once; int64, shape (m,)."""

    @abstractmethod
    def refuse_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """Refuse a sum as `implausible` that the vectors of these silos cannot have, were they all honest."""

    @abstractmethod
    def choose(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> float:
        """The threshold from the opened sum of these silos."""
