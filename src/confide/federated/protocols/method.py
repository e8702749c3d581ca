"""What a method of one-shot federated calibration says: what a silo draws, the certificate, the loss, its JSON fields.

A silo draws a vector over the candidates, a channel adds the vectors of all, and a threshold is read off the sum. A
method is a frozen dataclass of public numbers, beside its theorem; nothing else in the package asks which one it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.channels import Channel
from confide.federated.protocols.plan_fields import Counts, Options
from confide.federated.terms import Population, Terms
from confide.guarantee import AboutSilos, Guarantee, GuaranteeKind
from confide.mechanisms import PrivacyStatement
from confide.support import Fields


@dataclass(frozen=True)
class Promise:
    """What is promised beforehand for one number of answers, whichever silos they come from.

    Parameters
    ----------
    coverage
        Guaranteed coverage (with probability 1 - delta, if the plan has a delta); 0 if nothing is promised.
    k
        The largest k that may be needed: the k-th smallest of the answers is the threshold. 0 if answers are not
        sorted.
    infinite
        Whether the threshold will be +inf: `never` for want of answers, `perhaps` (it depends on which silos answer),
        or `always`.
    """

    coverage: float
    k: int
    infinite: Literal["never", "perhaps", "always"]


class Method(ABC):
    """The base of all methods. Silos are named by their place in the terms."""

    theorem: ClassVar[str]
    """Where its promise is proved, in docs/theory-federated.md."""
    private: ClassVar[bool] = True
    """Whether its vectors are differentially private."""
    secret_sizes: ClassVar[bool] = False
    """Whether silos may keep their sizes secret."""
    withstands_liars: ClassVar[bool] = True
    """Whether it can promise coverage although some silos lie, where each answer is known by itself."""
    relies_for: ClassVar[str] = "privacy relies on"
    """What relies on other silos where only a sum opens, in words."""
    populations: ClassVar[tuple[Population, ...]] = ("common",)
    """Whom it can promise coverage to; the first one by default."""
    one_draw: ClassVar[bool] = False
    """Whether all levels of one plan are read off one draw."""
    serves: ClassVar[str] = ""
    """How many candidates serve best, where there is a bound on them."""

    @classmethod  # noqa: B027 - most have no terms of their own
    def check(cls, terms: Terms, *, opened: bool) -> None:
        """Refuse terms that it cannot keep; `opened`: whether by a sum that opens without some of the silos."""

    @classmethod
    def local_terms(cls, terms: Terms, options: Options, channel: Channel) -> Terms:
        """Terms with the loss that a silo is charged, where it is another than the one asked for."""
        return terms

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, options: Options, channel: Channel) -> Self:
        """The method for these terms, from public numbers alone; refused if no finite threshold is possible."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, terms: Terms, channel: Channel) -> Self:
        """The method from its fields in a plan; what cannot come from `planned` is refused."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Its fields in a plan, by name; those of `VOID` that it leaves out are written as there."""

    @abstractmethod
    def target_rank(self, i: int) -> Fraction | None:
        """The rank at which silo i aims; None if silos have no targets of their own."""

    @abstractmethod
    def loss(self, terms: Terms, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""

    def privacy(self, terms: Terms, who: Sequence[int]) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        loss = max((self.loss(terms, i) for i in who), default=0.0)
        return PrivacyStatement("replace_one", loss, 1, None, loss, None)

    def words(self, terms: Terms) -> list[tuple[str, str]]:
        """What else is to be said of it in a plan, (name, value) each."""
        return []

    @abstractmethod
    def draw(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The vector of silo `own`, drawn once, from its counts over the candidates; both int64 of shape (m,)."""

    def refuse_reply(self, terms: Terms, i: int, chosen: int) -> None:  # noqa: B027 - likewise
        """Refuse a candidate that silo i cannot have replied, where it is known by itself."""

    @abstractmethod
    def refuse_total(self, terms: Terms, who: Sequence[int], total: Counts) -> None:
        """Refuse a sum as `implausible` that the vectors of these silos cannot have, were they all honest."""

    def bits(self, terms: Terms) -> int:
        """Into how many bits the numbers of the sum fit: 32 or 64."""
        return 32

    @abstractmethod
    def read_off(self, terms: Terms, who: Sequence[int], total: Counts, k: int) -> float:
        """The threshold from the sum of the vectors of these silos, shape (m,), and the k of `certify`."""

    def can_release(self, terms: Terms, threshold: float) -> bool:
        """Whether this may be a threshold at all."""
        return threshold in terms.candidates.values

    @abstractmethod
    def certify(self, terms: Terms, who: Sequence[int], stated: int | None = None) -> tuple[int, Guarantee]:
        """Which of the sorted answers becomes the threshold (see `FederatedPlan.certify`), and what is promised.

        `stated` is the k of a calibration that may be of an earlier version, which may have chosen it larger.
        """

    @abstractmethod
    def promises(self, terms: Terms, numbers: Sequence[int]) -> dict[int, Promise]:
        """What is promised for these numbers of answers, the many first."""

    @abstractmethod
    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c."""

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The law of the threshold if all silos answer, over the m candidates, for a comparison before anybody pays.

        `below` has P(score <= e_j) for a known law of scores, shape (m,). Published methods in the clear do not say.
        """
        raise InputError("method", "must be one that can be compared: 'private-qq', 'secure-sum' or 'fedcp2-qq-sum'")

    def guarantee(self, terms: Terms, coverage: float, who: Sequence[int]) -> Guarantee:
        """A coverage as a statement, at most the level that was asked for, unless everything is covered."""
        n = None if terms.size is None else sum(terms.silos[i].size or 0 for i in who)
        kind: GuaranteeKind = "marginal" if terms.delta is None else "training_conditional"
        covers = min(coverage, float(terms.level)) if coverage < 1 else 1.0
        return Guarantee(kind, covers, terms.delta, n, None, silos=self.about_silos(terms))

    def about_silos(self, terms: Terms) -> AboutSilos | None:
        """What its promise assumes of the silos, or of the new record; None if it promises nothing."""
        return "alike" if terms.population == "common" else "by size"


def too_few_records() -> InputError:
    """No finite threshold can be promised."""
    return InputError(
        "silos",
        "have too few records for a finite threshold with this promise",
        remedy="Raise alpha or epsilon, use fewer candidates, or invite more silos",
    )


class Row(NamedTuple):
    """A method as plans name it: what silos draw, and the channels that may carry it, without and with dropouts."""

    name: str
    draws: type[Method]
    channels: tuple[type[Channel], type[Channel]]

    def channel(self, terms: Terms) -> type[Channel]:
        """A sum with silos that may be missing takes a second message."""
        return self.channels[terms.dropouts > 0]

    def check(self, terms: Terms) -> None:
        """Refuse terms that cannot be kept, by the name of the argument of `confide.federated.plan`."""
        draws, channel = self.draws, self.channel(terms)
        if (terms.epsilon is None) == draws.private:
            raise InputError(
                "epsilon", f"must be {'given' if draws.private else 'left out'} for the method {self.name!r}"
            )
        if terms.size is None and not draws.secret_sizes:
            raise InputError(
                "silos",
                f"must state their sizes for the method {self.name!r}",
                remedy="Only private-qq keeps them secret",
            )
        if terms.liars and not (draws.withstands_liars and channel.each):
            raise InputError(
                "liars", f"must be 0 for the method {self.name!r}: one liar can move its threshold anywhere"
            )
        if terms.population not in draws.populations:
            raise InputError(
                "population", f"must be 'common' for the method {self.name!r}", remedy="Secure-sum serves a mixture"
            )
        channel.check(terms, self.name, draws.serves)
        draws.check(terms, opened=channel.second)
