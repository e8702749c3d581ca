"""The interface of a method of one-shot federated calibration: its draw, certificate and loss.

A silo draws a vector over the candidates, a channel adds the vectors of all silos, and the threshold follows from the
sum. A method is a frozen dataclass of public numbers, whose digest is part of a plan.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.channels import Channel
from confide.federated.terms import Counts, Population, Terms
from confide.guarantee import AboutSilos, Guarantee, GuaranteeKind
from confide.mechanisms import PrivacyStatement
from confide.support import require


@dataclass(frozen=True)
class Promise:
    """The guarantee before the round for a number of answers, from any silos.

    Parameters
    ----------
    coverage
        Guaranteed coverage (with probability 1 - delta, if the plan has a delta).
    k
        The largest k that may be needed: the k-th smallest of the answers is the threshold. 0 if answers are not
        sorted.
    infinite
        Whether too few answers make the threshold +inf: `never`, `perhaps` (it depends on which silos answer), or
        `always`.
    """

    coverage: float
    k: int
    infinite: Literal["never", "perhaps", "always"]


class Method(ABC):
    """The base class of all methods. Silos are numbered by their position in the terms."""

    # The theorem of its guarantee in docs/theory-federated.md
    theorem: ClassVar[str]
    # Whether silos may keep their sizes secret
    secret_sizes: ClassVar[bool] = False
    # Whether it has a training-conditional guarantee
    has_delta: ClassVar[bool] = True
    # Label of the row that states the reliance on other silos, if only a sum opens
    reliance_label: ClassVar[str] = "privacy relies on"
    # Populations that it can guarantee coverage for; the first one is the default
    populations: ClassVar[tuple[Population, ...]] = ("common",)
    # Whether all levels of a plan follow from one draw
    one_draw: ClassVar[bool] = False
    # Advice on the number of candidates, for errors about a bound on it
    candidate_advice: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, channel: Channel) -> Self:
        """Plan the method for these terms, from public numbers; an error if no finite threshold is possible."""

    def target_rank(self, i: int) -> Fraction | None:
        """The target rank of silo i; None if silos have no targets."""
        return None

    @abstractmethod
    def loss(self, terms: Terms, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""

    def privacy(self, terms: Terms, answered: Sequence[int]) -> PrivacyStatement:
        """The loss of one record: silos hold different records, so it is the largest loss of a silo."""
        loss = max((self.loss(terms, i) for i in answered), default=0.0)
        return PrivacyStatement(
            "replace_one", epsilon=loss, records_per_person=1, add_remove=None, replace_one=loss, rho=None
        )

    @abstractmethod
    def draw(self, terms: Terms, i: int, counts: Counts) -> Counts:
        """Draw the vector of silo i once from its counts over the candidates; both int64 of shape (m,)."""

    @abstractmethod
    def check_total(self, terms: Terms, answered: Sequence[int], total: Counts) -> None:
        """Raise a `Refusal` (`implausible`) for a sum that the vectors of honest silos cannot have."""

    def bits(self, terms: Terms) -> int:
        """The number of bits that the numbers of the sum need: 32 or 64."""
        return 32

    @abstractmethod
    def read_off(self, terms: Terms, total: Counts, k: int) -> float:
        """The threshold from the sum of the silos' vectors, shape (m,), and the k of `certify`."""

    @abstractmethod
    def certify(self, terms: Terms, answered: Sequence[int]) -> tuple[int, Guarantee]:
        """The rank of the answer that becomes the threshold (see `ThresholdPlan.certify`), and the guarantee."""

    @abstractmethod
    def promises(self, terms: Terms, numbers: Sequence[int]) -> dict[int, Promise]:
        """The guarantees for these numbers of answers, the largest first."""

    @abstractmethod
    def coverage_failure(self, terms: Terms, answered: Sequence[int], k: int) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c."""

    def answer_law(self, terms: Terms, below: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law of the threshold over the m candidates if all silos answer, for `compare`.

        `below` has P(score <= e_j) for a known law of scores, shape (m,). The law may be drawn with a seed, because it
        uses no private data. Published methods have none.
        """
        raise InputError("method", "must be one that can be compared: 'private-qq' or 'secure-sum'")

    def guarantee(self, terms: Terms, coverage: float, answered: Sequence[int]) -> Guarantee:
        """The statement of a coverage guarantee, at most the requested level unless everything is covered."""
        n = None if terms.size is None else sum(terms.silos[i].size or 0 for i in answered)
        kind: GuaranteeKind = "marginal" if terms.delta is None else "training_conditional"
        covers = min(coverage, float(terms.level)) if coverage < 1 else 1.0
        return Guarantee(kind, covers, delta=terms.delta, n=n, n_min=None, silos=self.about_silos(terms))

    def about_silos(self, terms: Terms) -> AboutSilos:
        """The guarantee's assumption about the silos or the new record."""
        return "alike" if terms.population == "common" else "by size"


def too_few_records() -> InputError:
    """The error if no finite threshold can be guaranteed."""
    return InputError(
        "silos",
        "have too few records for a finite threshold with this guarantee",
        remedy="Raise alpha or epsilon, use fewer candidates, or invite more silos",
    )


class Row(NamedTuple):
    """A method by its name in plans, and its channel."""

    name: str
    method: type[Method]
    channel: type[Channel]

    def check(self, terms: Terms) -> None:
        """Reject unsupported terms with an error for the argument of `confide.federated.plan`."""
        must = f"must state their sizes for the method {self.name!r}"
        remedy = "Only private-qq keeps sizes secret"
        require("silos", terms.size is not None or self.method.secret_sizes, must, remedy=remedy)

        # What a sum cannot withstand
        if not self.channel.single_replies:
            must = f"must be 0 for the method {self.name!r}: one Byzantine silo can move its threshold anywhere"
            require("liars", terms.liars == 0, must)
            must = f"must be 0 for the method {self.name!r}: its sum needs the answers of all silos"
            remedy = "If one does not answer, make a new plan without it, for which the others pay again"
            require("dropouts", terms.dropouts == 0, must, remedy=remedy)

        # What its guarantee covers
        must = f"must be 'common' for the method {self.name!r}"
        remedy = "Secure-sum supports 'mixture', without delta"
        require("population", terms.population in self.method.populations, must, remedy=remedy)
        are_enough = self.channel.single_replies or len(terms.silos) > 1
        require("silos", are_enough, f"must be at least two for the method {self.name!r}")
        must = f"must be left out for the method {self.name!r}"
        remedy = "Private-qq has a training-conditional guarantee"
        require("delta", terms.delta is None or self.method.has_delta, must, remedy=remedy)
