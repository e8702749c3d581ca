"""Coverage guarantees, in numbers and in words."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

GuaranteeKind: TypeAlias = Literal["marginal", "training_conditional", "none"]

AboutSilos: TypeAlias = Literal["alike", "by size"]

_SILO_ASSUMPTIONS: dict[AboutSilos | None, str] = {
    None: "",
    "alike": "if all silos have the same distribution",
    "by size": "for a new record of silo j with probability n_j/n, also if the silos differ",
}


def silos_text(silos: AboutSilos | None) -> str:
    """The assumption about the silos of a federation, or about the new record, in words; empty without a federation."""
    return _SILO_ASSUMPTIONS[silos]


def coverage_text(coverage: float) -> str:
    """A guaranteed coverage as a decimal number, rounded down: to four digits if that loses less than 2e-5, or six."""
    coarse, fine = (math.floor(coverage * 10**digits + 1e-9) / 10**digits for digits in (4, 6))
    return f"{coarse if coverage - coarse < 2e-5 else fine:.6g}"


@dataclass(frozen=True)
class RecordCount:
    """The numbers of records that a certificate is for: the public number `least`, or every secret one from it on."""

    least: int
    public: bool = True

    @property
    def n(self) -> int | None:
        """The public number; None if it is secret."""
        return self.least if self.public else None

    @property
    def n_min(self) -> int | None:
        """The least secret number; None if the number is public."""
        return None if self.public else self.least


@dataclass(frozen=True)
class Guarantee:
    """A coverage guarantee.

    Parameters
    ----------
    kind
        `"marginal"`: a new record's true label is in its set with probability at least `coverage`, over calibration
        data, noise and new record. `"training_conditional"`: with probability 1 - delta over calibration data and
        noise, new records are covered with probability at least `coverage`. `"none"`: there is no guarantee, and
        `coverage` is 0.
    coverage
        The guaranteed coverage.
    delta
        Failure probability of a training-conditional guarantee, else None.
    n
        The public number of calibration records, or None if it is secret.
    n_min
        If n is secret, the guarantee holds for every number of records from n_min on; else None.
    silos
        For a federation: `"alike"` if new records and those of all silos must come from one population; `"by size"` if
        the new record belongs to a silo drawn by its size. Else None. It follows from the plan.
    population
        The shifted population of the new records, in words; None without a known shift. It follows from the weights.
    sized
        Whether the guarantee is also on average over a noisy number of records.

    Examples
    --------
    >>> print(Guarantee("marginal", 0.9, None, None, 1))
    coverage at least 0.9 on average over calibration data and new records, for every number of records
    >>> print(Guarantee("marginal", 0.9, None, 300, None, silos="alike"))
    coverage at least 0.9 on average over calibration data and new records, from 300 calibration records, if all ...
    """

    kind: GuaranteeKind
    coverage: float
    delta: float | None
    n: int | None
    n_min: int | None
    silos: AboutSilos | None = None
    population: str | None = None
    sized: bool = False

    @property
    def brief(self) -> str:
        """The guarantee in a few words, with its conditions.

        Examples
        --------
        >>> Guarantee("training_conditional", 0.9, 0.05, None, 1).brief
        'coverage at least 0.9 with probability 0.95'
        """
        if self.kind == "none" or self.coverage == 0:
            return "NO COVERAGE PROMISED"
        probability = "" if self.delta is None else f" with probability {self._probability}"
        silos = f" {silos_text(self.silos)}" if self.silos else ""
        population = " for a shifted population" if self.population else ""
        return f"coverage at least {coverage_text(self.coverage)}{probability}{silos}{population}"

    @property
    def _probability(self) -> str:
        return f"{float(1 - Fraction(str(self.delta))):.6g}"

    def __str__(self) -> str:
        return self.of(f"coverage at least {coverage_text(self.coverage)}")

    def of(self, statement: str) -> str:
        """The guarantee in words for a statement that follows from the coverage, such as a bound on a loss."""
        if self.kind == "none" or self.coverage == 0:
            return "NO COVERAGE IS PROMISED by this mechanism"

        # The numbers of records, and the assumptions about new ones.
        if self.n is not None:
            scope = f"from {self.n} calibration records"
        elif self.n_min in (0, 1):
            scope = f"for every number of records{'' if self.n_min else ', also none'}"
        else:
            scope = f"for every number of records from {self.n_min} on"
        scope += f", {silos_text(self.silos)}" if self.silos else ""
        scope += f", {self.population}" if self.population else ""

        # The type of guarantee.
        if self.kind == "marginal":
            number = "the noisy number of records, " if self.sized else ""
            return f"{statement} on average over {number}calibration data and new records, {scope}"
        return f"with probability {self._probability} over the calibration data, {statement} for new records, {scope}"


@dataclass(frozen=True)
class LongRun(Guarantee):
    """No guarantee for a new record, but a statement about all records so far; `kind` is `"none"`, `coverage` 0."""

    words: str = ""

    @property
    def brief(self) -> str:
        """The statement in a few words."""
        return "no promise for one record, corrected look by look"

    def of(self, statement: str) -> str:
        """The words about all records; `statement` does not follow from them."""
        return f"no promise for one record or one look; {self.words}"
