"""private-qq, the default: every silo replies by the slope mechanism, the threshold is the k-th smallest reply.

A reply is private by itself, against everybody. docs/federated.md: Theorem F3 for public sizes, F4 for secret ones;
`private_quantiles.py` chooses the mechanisms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.federated.many_silos import StandIns, tails
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols.plan_fields import read_field, refuse_contradiction
from confide.federated.protocols.protocol import Options, too_few_records
from confide.federated.protocols.sorted_replies import SortedCandidates, mean_law_of_choice
from confide.federated.random_rank_reply import ReplyLaw
from confide.federated.reply_laws import slopes_reply
from confide.federated.terms import Terms
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement, Slopes
from confide.selection import Selector, zcdp_of_range
from confide.support import Fields

MOST_DENOMINATOR = 1000
_ALL_DRAWS, _LEAST_DRAWS = 400, 8


@dataclass(frozen=True)
class PrivateQQ(SortedCandidates):
    """Our own method for private replies.

    Parameters
    ----------
    targets
        One target rank per silo.
    rate
        How fast the target grows with n + 1 for silos of secret size, else 0.
    left, right, scale, selector
        The slopes and the noise of the mechanism.
    n_min, n_typical
        For secret sizes: least and typical number of records per silo.
    flat, rise
        The heights of the candidates, as of `Slopes`; in plans of version 0.1 all are equally high.

    Examples
    --------
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> made = plan(silos, 0.1, 5.0, score="lac")
    >>> made.protocol.target_rank(0) < 200, made.loss(0)
    (True, 5.0)
    """

    method = "private-qq"
    secret_sizes = True

    targets: tuple[Fraction, ...]
    rate: Fraction
    left: int
    right: int
    scale: float
    selector: Selector
    n_min: int
    n_typical: int
    flat: Fraction = Fraction(0)
    rise: int = 0

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The mechanisms of least expected coverage among those that are certified."""
        m = len(terms.silos)
        sure = m - terms.liars - terms.dropouts
        found = best_private_qq(
            [silo.size for silo in terms.silos],
            terms.level,
            terms.epsilon or 0.0,
            terms.candidates.size,
            delta=terms.delta,
            honest=m if terms.missing == "arbitrary" else sure,
            absent=terms.dropouts,
            most_k=sure,
            n_min=options.n_min,
            n_typical=options.n_typical,
            selector=options.selector,
        )
        if found is None:
            raise too_few_records()
        one, targets = found.mechanisms[0], tuple(mechanism.offset for mechanism in found.mechanisms)
        sizes = options.n_min, options.n_typical
        return cls(targets, one.rate, one.left, one.right, one.scale, options.selector, *sizes, one.flat, one.rise)

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From its fields, each under its own name."""
        names = ("targets", "rate", "left", "right", "scale", "selector", "n_min", "n_typical")
        heights = [name for name in ("flat", "rise") if "flat" in fields or "rise" in fields]
        made = cls(*(read_field(fields, name, terms) for name in (*names, *heights)))
        refuse_contradiction(not 0 <= made.flat < terms.candidates.size or made.flat.denominator > MOST_DENOMINATOR)
        refuse_contradiction(len(made.targets) != len(terms.silos) or not 0 <= made.rate < 1)
        if terms.size is not None:
            within = (0 < target <= (silo.size or 0) for target, silo in zip(made.targets, terms.silos, strict=True))
            refuse_contradiction(made.rate != 0 or not all(within))
        return made

    def fields(self) -> dict[str, Any]:
        """Also the rate as a text; the heights if there is a rise."""
        stated = {**super().fields(), "rate": str(self.rate), "flat": str(self.flat)}
        return stated if self.rise else {name: value for name, value in stated.items() if name not in ("flat", "rise")}

    def mechanism(self, terms: Terms, i: int) -> Slopes:
        """The slope mechanism."""
        slopes = self.left, self.right, self.scale, self.selector
        return Slopes(self.rate, self.targets[i], *slopes, flat=self.flat, rise=self.rise)

    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """A random rank; for a secret size the worst over all sizes from n_min on."""
        return slopes_reply(terms.silos[i].size, self.mechanism(terms, i), terms.candidates.size, self.n_min)

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Drawn counts, then the exact law of each silo's choice; silos of one size have one law."""
        k = self.certify(terms, range(len(terms.silos)))[0]
        stand = StandIns.of([silo.size or self.n_typical for silo in terms.silos])
        places = {silo.size or self.n_typical: i for i, silo in enumerate(terms.silos)}
        draws = max(_LEAST_DRAWS, _ALL_DRAWS // len(stand.sizes))
        bins = np.diff(below, prepend=0.0)
        replies = [
            mean_law_of_choice(self.mechanism(terms, places[n]), self.selector, rng.multinomial(n, bins, draws))
            for n in stand.sizes.tolist()
        ]
        at_most = tails(np.cumsum(replies, axis=1), stand.silos)(k) if k <= len(terms.silos) else np.zeros(len(below))
        at_most[-1] = 1.0
        return np.maximum(np.diff(at_most, prepend=0.0), 0.0)

    def privacy(self, terms: Terms, who: Sequence[int]) -> PrivacyStatement:
        """Beside the largest loss, its zCDP for the exponential selector and both relations for secret sizes."""
        stated = super().privacy(terms, who)
        rho = zcdp_of_range(stated.epsilon) if self.selector == "exponential" else None
        if terms.neighbors == "replace_one":
            return replace(stated, rho=rho)
        replaced = max((self.mechanism(terms, i).replace_one for i in who), default=0.0)
        return PrivacyStatement("add_remove", stated.epsilon, 1, stated.epsilon, replaced, rho)

    def guarantee(self, terms: Terms, coverage: float, who: Sequence[int]) -> Guarantee:
        """For secret sizes it holds from n_min records per silo on."""
        stated = super().guarantee(terms, coverage, who)
        return replace(stated, n_min=self.n_min) if stated.n is None else stated
