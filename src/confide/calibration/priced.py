"""A release of one or more thresholds, for data that are counted elsewhere: priced, charged, drawn.

price_...(...)            checks what is asked and knows its price; nothing is charged
priced.charge()           charges it durably, or finds the earlier releases of identical requests
charged.draw(histograms)  draws every threshold, once
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confide.calibration.threshold import ChargedThreshold, PricedThreshold
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning
from confide.releases import Calibration

Assemble = Callable[[Mapping[Any, Calibration]], Any]
"""From the thresholds, by their names, to the release that is made of them."""


@dataclass(frozen=True)
class ChargedRelease:
    """Thresholds that are paid for and wait for their counts, or were released before; see `PricedRelease.charge`."""

    priced: "PricedRelease"
    parts: Mapping[Any, ChargedThreshold | Calibration]

    @property
    def waits(self) -> bool:
        """Whether any threshold waits for its counts."""
        return any(isinstance(part, ChargedThreshold) for part in self.parts.values())

    def draw(self, histograms: Mapping[Any, ScoreHistogram]) -> Any:
        """Draw every threshold that waits for its counts, once."""
        with warnings.catch_warnings():
            if self.priced.warns_together:
                warnings.simplefilter("ignore", CoverageWarning)
            drawn = {
                name: part.draw(histograms[self.priced.parts[name][0]]) if isinstance(part, ChargedThreshold) else part
                for name, part in self.parts.items()
            }
        return self.priced.assemble(drawn)


@dataclass(frozen=True)
class PricedRelease:
    """Thresholds that were asked for, checked and priced together: name to the name of its histogram, and its price.

    `assemble` makes the release of them, and says which thresholds are +inf where `warns_together`, instead of each.
    """

    parts: Mapping[Any, tuple[Any, PricedThreshold]]
    assemble: Assemble
    warns_together: bool = False

    @classmethod
    def single(cls, priced: PricedThreshold, wrap: Callable[[Calibration], Any] | None = None) -> "PricedRelease":
        """One threshold alone, named None, and so its histogram."""
        return cls({None: (None, priced)}, lambda drawn: drawn[None] if wrap is None else wrap(drawn[None]))

    def refuse_early(self) -> None:
        """Refuse what the ledger's limit does not allow; nothing is charged."""
        for _, part in self.parts.values():
            part.earlier()

    def charge(self) -> ChargedRelease:
        """All thresholds paid for, or found."""
        found = {name: (part, part.earlier()) for name, (_, part) in self.parts.items()}
        return ChargedRelease(
            self, {name: part.charge() if kept is None else kept for name, (part, kept) in found.items()}
        )
