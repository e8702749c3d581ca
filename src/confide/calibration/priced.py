"""A release of one or more thresholds: priced, compared with what a ledger remembers, charged, drawn.

price_...(...)          checks what is asked and knows its price; nothing is charged
priced.release(count)   does the rest, in the order of `confide.ledger.Bill.settle`; without a ledger it only draws
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confide.calibration.threshold import PricedThreshold, Seen, content
from confide.releases import Calibration, warn_of_choices
from confide.support import tell

if TYPE_CHECKING:
    from confide.ledger import Bill, Entry

Assemble = Callable[[Mapping[Any, Calibration]], Any]
"""From the thresholds, by their names, to the release that is made of them."""

Count = Callable[[], Mapping[Any, Seen]]
"""Looks at the data: what the mechanisms see, by the names that the thresholds refer to."""


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
        if (bill := self._bill()) is not None:
            bill.refuse_over_limit()

    def release(self, count: Count, *, charge_first: bool = False) -> Any:
        """Compare, charge, draw: in this order.

        Parameters
        ----------
        count
            Looks at the data, once.
        charge_first
            Charge before `count` is called, because looking at the data tells somebody something, unless the ledger has
            answered a request that looks identical: then what it costs is known only after the data were compared.

        Raises
        ------
        OtherDataError
            If a request that looks identical was answered about other data; nothing was charged.
        BudgetError
            If the ledger's limit does not allow all of it together; nothing was charged.
        """
        bill = self._bill()
        drawn: Mapping[Any, Calibration]
        earlier: Mapping[Any, Entry] = {}
        if bill is None:
            drawn = self._drawn(count(), self.parts)
        else:
            drawn, earlier = bill.settle(
                count, self._marks, self._drawn, Calibration.to_json, charge_first=charge_first
            )
        for name, one in drawn.items():
            _tell_released(name, one)
        return self._made(drawn, earlier)

    def _bill(self) -> "Bill[Any] | None":
        payments = {name: part.payment for name, (_, part) in self.parts.items() if part.payment is not None}
        if not payments:
            return None
        from confide.ledger import Bill

        return Bill.of(payments)

    def _marks(self, seen: Mapping[Any, Seen]) -> dict[Any, bytes]:
        return {name: content(seen[counted]) for name, (counted, _) in self.parts.items()}

    def _drawn(self, seen: Mapping[Any, Seen], names: Iterable[Any]) -> dict[Any, Calibration]:
        """These thresholds, drawn, each once."""
        return {name: priced.draw(seen[counted]) for name in names for counted, priced in [self.parts[name]]}

    def _made(self, drawn: Mapping[Any, Calibration], earlier: "Mapping[Any, Entry]") -> Any:
        """The release, of thresholds that were drawn and others that were kept."""
        parts = {
            name: drawn[name] if name in drawn else priced.words.of(Calibration.from_json(earlier[name].text))
            for name, (_, priced) in self.parts.items()
        }
        if not self.warns_together:
            for name, one in drawn.items():
                self.parts[name][1].warn(one)
        made = self.assemble(parts)
        warn_of_choices(made)
        return made


def _tell_released(part: Any, made: Calibration) -> None:
    """What is public of a release, without its threshold, the one thing in it that comes from the records."""
    tell(
        "calibration",
        "released",
        part=part,
        score=made.score,
        alpha=made.alpha,
        coverage=made.coverage,
        epsilon=made.privacy.epsilon,
        neighbors=made.privacy.neighbors,
        n="secret" if made.n is None else made.n,
    )
