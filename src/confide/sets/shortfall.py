"""`Shortfall`: coverage below the promise by more than chance explains, with the role of luck in calibrating."""

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from confide.guarantee import coverage_text
from confide.sets.coverage import CHANCE

Luck: TypeAlias = Literal["excluded", "rare", "unknown", "not read"]
"""The role of luck in calibrating: it does not explain the shortfall; only an unlucky calibration does,
which a guarantee with probability 1 - delta allows; no law of coverage is known; the evaluation was read without its
release."""

_CAUSES = "Possible causes: other records than the calibration records, another model, or a wrong column."


@dataclass(frozen=True)
class Shortfall:
    """Coverage below the guarantee by more than chance explains."""

    # The share of n records, whose number may be secret, and its upper limit with probability 1 - CHANCE/2.
    coverage: float
    high: float
    n: int | None

    # What is guaranteed, and whether luck explains it; with a secret number of calibration records from which number on
    # it does not.
    promised: float
    luck: Luck
    from_records: int | None = None

    # Of the guarantee: its delta; name and largest value of a loss; what distinguishes thresholds; a known shift.
    delta: float | None = None
    loss: tuple[str, float] | None = None
    parts: str | None = None
    population: str | None = None

    @property
    def is_broken(self) -> bool:
        """Whether a correct release falls so short with probability CHANCE, or CHANCE + delta, at most."""
        return self.luck in ("excluded", "rare")

    @property
    def sentence(self) -> str:
        """The finding, whether luck explains it, and other possible causes.

        Examples
        --------
        >>> Shortfall(0.505, 0.52, 8780, 0.9, "excluded").sentence
        'Covered surely less than promised: 50.5 % of 8,780 records where 90 % is promised. Luck in ...'
        """
        # The coverage or the loss, with its promise.
        records = "the records" if self.n is None else f"{self.n:,} records"
        sure = "" if self.delta is None else f" with probability {float(1 - Fraction(str(self.delta))):.6g}"
        if self.loss is None:
            less = "Covered surely less than promised"
            share, promised = f"{100 * self.coverage:.4g} %", f"{100 * float(coverage_text(self.promised)):.6g} %"
            what = f"{less}: {share} of {records} where {promised} is promised{sure}."
        else:
            name, bound = self.loss
            loss, most = f"{bound * (1 - self.coverage):.4g}", f"{bound * (1 - self.promised):.6g}"
            lead = f"Loss {name!r} surely larger than promised"
            what = f"{lead}: {loss} on {records} where at most {most} is promised{sure}."
        return f"{what} {self._luck} {_CAUSES}"

    @property
    def _luck(self) -> str:
        match self.luck:
            case "excluded":
                limit = (
                    "" if self.from_records is None else f", unless fewer than {self.from_records:,} records calibrated"
                )
                each = f" in one {self.parts}" if limit and self.parts else ""
                return f"Luck in calibrating does not explain this{limit}{each}."
            case "rare":
                rare = f"{100 * (self.delta or 0):.6g} %"
                return f"Only an unlucky calibration, one of the {rare} that the promise excludes, would explain this."
            case "unknown":
                only = "" if self.population is None else f"The promise is {self.population}. "
                return f"{only}It is unknown how far an unlucky calibration may fall short of this promise."
        return "A report of the release with this evaluation states whether luck in calibrating explains this."

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        stated = {name: value for name, value in asdict(self).items() if value is not None}
        return {**stated, "broken": self.is_broken, "chance": CHANCE + (self.delta or 0), "sentence": self.sentence}


def sentence_of(name: str, shortfall: Shortfall) -> str:
    """A finding about one guarantee, with its name; "" for a release as a whole."""
    return f"{name}: {shortfall.sentence}" if name else shortfall.sentence
