"""The plan of one threshold: its terms, and what follows from them by a method: draws, a certificate, a loss.

A silo draws a vector over the candidates, a channel adds the vectors of all silos, and the threshold follows from the
sum. What a method has chosen are public numbers, whose digest is part of the plan of a federation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.channels import Channel
from confide.federated.terms import Counts, Population, Terms
from confide.guarantee import AboutSilos, Guarantee, GuaranteeKind, silos_text
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

    @property
    def text(self) -> str:
        """The guarantee in words."""
        if self.infinite == "always":
            return "the threshold +inf"
        perhaps = ", perhaps by the threshold +inf" if self.infinite == "perhaps" else ""
        return f"coverage at least {self.coverage:.6g}{perhaps}"


class Certificate(NamedTuple):
    """The rank k of the answer that becomes the threshold, 0 for sums of counts, and the guarantee."""

    k: int
    guarantee: Guarantee


# Maximum length of a vector of which only the sum opens, because its message contains every number
_MOST_SUMMED = 2**14

_MISSING = {
    "independent": "whether a silo answers must not depend on its scores",
    "arbitrary": "whether a silo answers may depend on its scores",
}


@dataclass(frozen=True, kw_only=True)
class ThresholdPlan(Terms, ABC):
    """The plan of one threshold, the base class of all methods. Silos are numbered by their position in the terms.

    `method` is the name of one of `confide.federated.protocols.PROTOCOLS`.
    """

    # The theorem of its guarantee in docs/theory-federated.md
    theorem: ClassVar[str]
    # The fields that the method sets, beyond the terms
    parameters: ClassVar[tuple[str, ...]]
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

    method: str
    channel: Channel

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, method: str, channel: Channel) -> Self:
        """Plan the method for these terms, from public numbers; an error if no finite threshold is possible."""

    @property
    def derived(self) -> list[Any]:
        """What participants compare: all that follows from the terms."""
        privacy = self.privacy()
        losses = [privacy.epsilon, privacy.replace_one, privacy.rho]
        parameters = {name: getattr(self, name) for name in self.parameters}
        return [self.candidates.size, self.candidates.digest, parameters, vars(self.channel), losses]

    def target_rank(self, i: int) -> Fraction | None:
        """The target rank of silo i; None if silos have no targets."""
        return None

    # The loss

    @abstractmethod
    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record: silos hold different records, so it is the largest loss of a silo."""
        loss = max(map(self.loss, self.answering(answered)), default=0.0)
        return PrivacyStatement("replace_one", loss, 1, add_remove=None, replace_one=loss, rho=None)

    def answering(self, answered: Collection[int] | None) -> Sequence[int]:
        """The silos that answered, by default all."""
        return sorted(range(len(self.silos)) if answered is None else set(answered))

    # A draw, and the threshold

    def check_length(self, draws: int) -> None:
        """Reject a number of candidates that would make messages of this many vectors too long."""
        fits = self.channel.single_replies or draws * self.candidates.size <= _MOST_SUMMED
        several = f"{draws} thresholds by " if draws > 1 else ""
        must = f"must number at most {_MOST_SUMMED // draws} for {several}the method {self.method!r}"
        require("candidates", fits, must + self.candidate_advice)

    @abstractmethod
    def draw(self, i: int, counts: Counts) -> Counts:
        """Draw the vector of silo i once from its counts over the candidates; both int64 of shape (m,)."""

    @abstractmethod
    def check_total(self, answered: Sequence[int], total: Counts) -> None:
        """Raise a `Refusal` (`implausible`) for a sum that the vectors of honest silos cannot have."""

    @abstractmethod
    def read_off(self, total: Counts, k: int) -> float:
        """The threshold from the sum of the silos' vectors, shape (m,), and the k of `certify`."""

    # The guarantee

    def certify(self, answered: Collection[int] | None = None) -> Certificate:
        """The certificate for the silos that answered.

        The threshold is the k-th smallest of all answers, those of Byzantine silos included; if k exceeds their number
        it is +inf.
        """
        answering = self.answering(answered)
        self.channel.check_answers(self, answering)
        return self.certificate(answering)

    @abstractmethod
    def certificate(self, answered: Sequence[int]) -> Certificate:
        """The result of `certify`."""

    @abstractmethod
    def promises(self) -> dict[int, Promise]:
        """The guarantee by number of answers, from all silos down to the least number that gives a threshold."""

    @abstractmethod
    def coverage_failure(self, answered: Sequence[int], k: int) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c."""

    def answer_law(self, below: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law of the threshold over the m candidates if all silos answer, for `compare`.

        `below` has P(score <= e_j) for a known law of scores, shape (m,). The law may be drawn with a seed, because it
        uses no private data. Published methods have none.
        """
        raise InputError("method", "must be one that can be compared: 'private-qq' or 'secure-sum'")

    def guarantee(self, coverage: float, answered: Sequence[int]) -> Guarantee:
        """The statement of a coverage guarantee, at most the requested level unless everything is covered."""
        n = None if self.size is None else sum(self.silos[i].size or 0 for i in answered)
        kind: GuaranteeKind = "marginal" if self.delta is None else "training_conditional"
        covers = min(coverage, float(self.level)) if coverage < 1 else 1.0
        return Guarantee(kind, covers, delta=self.delta, n=n, n_min=None, silos=self.about_silos)

    @property
    def about_silos(self) -> AboutSilos:
        """The guarantee's assumption about the silos or the new record."""
        return "alike" if self.population == "common" else "by size"

    # Descriptions

    @property
    def assumed(self) -> str:
        """The guarantee's assumption about the silos or the new record, in words."""
        return silos_text(self.about_silos)

    @property
    def reliance(self) -> str | None:
        """How many other silos may collude, of those that an answer relies on; None if it relies on none."""
        count = self.channel.colluders
        if count is None:
            return None
        colluders = f"at most {count} of the {len(self.silos)} silos" if count else "no silo"
        return f"the other silos: {colluders} may collude with the coordinator"

    @property
    def trust_rows(self) -> list[tuple[str, str]]:
        """The conditions of the guarantee and of privacy, as (name, value) rows."""
        rows = [
            ("silos that may be missing", f"{self.dropouts}; " + _MISSING[self.missing]),
            ("Byzantine silos", f"at most {self.liars}"),
            ("guarantee", self.assumed),
        ]
        return rows if self.reliance is None else [*rows, (self.reliance_label, self.reliance)]

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees for all numbers of answers: one line for a range of numbers with the same guarantee."""
        promises = self.promises()
        lines = []
        for words, numbers in groupby(promises, key=lambda answers: promises[answers].text):
            most, *fewer = numbers
            number = f"{fewer[-1]} to {most}" if fewer else f"{most}"
            lines.append(f"{number} answer{'' if number == '1' else 's'}: {words}")
        return lines


def too_few_records() -> InputError:
    """The error if no finite threshold can be guaranteed."""
    return InputError(
        "silos",
        "have too few records for a finite threshold with this guarantee",
        remedy="Raise alpha or epsilon, use fewer candidates, or invite more silos",
    )


class Protocol(NamedTuple):
    """A method by its name in plans, and its channel."""

    name: str
    method: type[ThresholdPlan]
    channel: type[Channel]

    def planned(self, terms: Terms) -> ThresholdPlan:
        """The plan of a threshold, which follows from its terms; an error if the method does not support them."""
        self.check(terms)
        return self.method.planned(terms, self.name, self.channel.planned(terms))

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
