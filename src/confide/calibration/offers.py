"""A release in three steps, for data that are counted elsewhere: offered, paid for, drawn.

    make_offer(...)          checks what is asked and knows its price; nothing is charged
    offer.accept()           charges it durably, or finds the kept release of an identical request
    pledge.finish(counts)    draws, once

`group_offer` does the same for one threshold per group.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from confide.calibration.calibrate import Pledge, payment_for, pledge
from confide.calibration.several import group_terms, warned
from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.mechanisms.privacy import Neighbors
from confide.planning.request import Request, check_request
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.support.checks import one_of
from confide.support.rationals import Level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger
    from confide.ledger.payment import Payment

_DEFAULTS: dict[str, Any] = {
    "rho": None,
    "neighbors": "add_remove",
    "n_min": 1,
    "n_typical": None,
    "delta": None,
    "records_per_person": 1,
    "selector": None,
    "slopes": None,
    "shift": None,
    "mechanism": "slopes",
}


@dataclass(frozen=True)
class Offer:
    """A release that was checked and priced; made by `make_offer`."""

    request: Request
    score: str | None
    payment: "Payment | None"

    def kept(self) -> Calibration | None:
        """The kept release of an identical request; a request that the ledger's limit does not allow is refused."""
        return None if self.payment is None else self.payment.earlier()

    def accept(self) -> Pledge | Calibration:
        """The paid release, or the kept one."""
        return self.kept() or pledge(self.request, self.score, self.payment)


def make_offer(
    alpha: Level,
    epsilon: float | None,
    n: int | None,
    candidates: Candidates,
    score: str | None,
    *,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    **options: Any,
) -> Offer:
    """Check what is asked of a release. `n` is the public number of records under `replace_one`, and not used else.

    Examples
    --------
    >>> from confide import Candidates, ScoreHistogram
    >>> candidates = Candidates.unit(100)
    >>> offer = make_offer(0.1, 1.0, None, candidates, "lac")
    >>> offer.accept().finish(ScoreHistogram.from_scores([0.5] * 1000, candidates)).privacy.epsilon
    1.0
    """
    unknown = sorted(set(options) - set(_DEFAULTS))
    if unknown:
        raise InputError(f"options must be those of calibrate; found {', '.join(unknown)}")
    request = check_request(
        alpha=alpha, epsilon=epsilon, n=1 if n is None else n, candidates=candidates.size, **_DEFAULTS | options
    )
    return Offer(request, score, payment_for(request, candidates, score, ledger, dataset))


def check_number(histogram: ScoreHistogram, n: int | None) -> None:
    """Refuse counts of another number of records than the public one that was stated."""
    if n is not None and histogram.total != n:
        raise InputError(f"n must be the number of records that count; found {histogram.total}, and n={n} was given")


@dataclass(frozen=True)
class GroupPledge:
    """Releases for groups, each paid for or kept from before; made by `GroupOffer.accept`."""

    by: Literal["group", "class"]
    neighbors: Neighbors
    parts: Mapping[str | int, Pledge | Calibration]

    @property
    def waits(self) -> bool:
        """Whether any group waits for its counts."""
        return any(isinstance(part, Pledge) for part in self.parts.values())

    def finish(self, histograms: Mapping[str | int, ScoreHistogram]) -> GroupCalibration:
        """Draw the threshold of every group that waits for it, once."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            parts = {
                name: part.finish(histograms[name]) if isinstance(part, Pledge) else part
                for name, part in self.parts.items()
            }
        return warned(GroupCalibration(self.by, self.neighbors, parts))


@dataclass(frozen=True)
class GroupOffer:
    """Releases for groups that were checked and priced; made by `group_offer`."""

    by: Literal["group", "class"]
    neighbors: Neighbors
    parts: Mapping[str | int, Offer]

    def refuse_early(self) -> None:
        """Refuse what the ledger's limit does not allow; nothing is charged."""
        for part in self.parts.values():
            part.kept()

    def accept(self) -> GroupPledge:
        """All groups paid for, or found."""
        self.refuse_early()
        return GroupPledge(self.by, self.neighbors, {name: part.accept() for name, part in self.parts.items()})


def group_offer(
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None,
    candidates: Candidates,
    score: str | None,
    *,
    by: Literal["group", "class"] = "group",
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    partition: str | None = None,
    **options: Any,
) -> GroupOffer:
    """Check what is asked of a release per group; arguments as in `calibrate_groups`.

    Examples
    --------
    >>> from confide import Candidates, ScoreHistogram
    >>> candidates = Candidates.unit(100)
    >>> counts = {name: ScoreHistogram.from_scores([0.5] * 1000, candidates) for name in ("a", "b")}
    >>> group_offer(["a", "b"], 0.1, 1.0, candidates, "lac").accept().finish(counts).privacy.epsilon
    1.0
    """
    one_of("by", by, ("group", "class"))
    if options.get("mechanism") == "none":
        raise InputError("mechanism must be a private one: sizes of groups, which 'none' reveals, stay secret")
    terms = group_terms(names, epsilon, rho, neighbors, ledger, dataset, partition)
    parts = {
        name: make_offer(alpha, own.pop("epsilon", None), None, candidates, score, **options, **own)
        for name, own in terms.items()
    }
    return GroupOffer(by, neighbors, parts)
