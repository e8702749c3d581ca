"""The design of a threshold: everything public about it but the threshold itself.

Candidates, slopes and rise have the least mean price (tuning.py). Then comes the smallest target rank that a
certificate accepts. Validity rests on that certificate alone, which every reader of a release computes again. The
published methods have parameters of their own.
"""

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.candidates import FINEST, Candidates, Spread, listed
from confide.core.reference_laws import typical_law
from confide.core.terms import NUMBERED, Terms
from confide.core.thresholds import Threshold
from confide.core.tuning import Tuning, sizes_of, tune
from confide.guarantee import (
    Guarantee,
    RecordCount,
    TargetGoal,
    conditional_offset,
    conditional_target_rank,
    moving_offset,
    sharp_target_rank,
    tangent_rate,
    two_sided_target_rank,
    weighted_loss,
    weighted_prior_bonus,
)
from confide.mechanisms import (
    Mechanism,
    NoisyHistogram,
    NoisySize,
    PrivacyStatement,
    PublishedHistogram,
    Slopes,
    StatedPrivacy,
    certify,
    free_fade,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    privacy_statement,
    published_histogram_for,
    size_zcdp,
    slopes_for,
    split_conformal_for,
    with_choice,
)
from confide.selection import zcdp_of_range
from confide.support import DEBUG, ceil_to, float_above, log_event, scale_for

# The number of candidates of a published method.
_PUBLISHED_SIZE = 1000


def longest_list(terms: Terms) -> Candidates:
    """Candidates of which every design of these terms has some; a published method has 1000, if they are not listed."""
    spread = terms.known_spread
    if isinstance(spread, Candidates):
        return spread
    if terms.mechanism == "none":  # nothing is drawn, so the finest list costs nothing
        return listed(spread, spread.most or FINEST)
    return listed(spread, sizes_of(spread)[-1] if terms.mechanism in NUMBERED else _PUBLISHED_SIZE)


def published_list(terms: Terms, n: int) -> Candidates:
    """The list of a published method for n records."""
    spread = terms.known_spread
    if isinstance(spread, Candidates) or terms.mechanism != "noisy-histogram":
        return longest_list(terms)
    # About the best number of bins for n records.
    scale = scale_for(2 if terms.public_n else 1, terms.per_record)
    return listed(spread, histogram_size(spread, n, terms.served, scale))


@lru_cache(maxsize=1024)
def histogram_size(spread: Spread, n: int, levels: tuple[Fraction, ...], scale: float) -> int:
    """About the best number of bins of a noisy histogram; the noise in each bin has the given scale, in records.

    With more bins candidates are closer together, but more noise adds up: that of all bins beyond a threshold. The size
    minimises the root mean square of both errors together, for typical scores and for scores below all bins.
    """

    def price(size: int) -> float:
        below = typical_law(Candidates.quantiles(spread, size))
        places = np.searchsorted(below, [float(level) for level in levels])
        distances = n * np.diff(below, prepend=0.0)[places]  # a threshold lies anywhere between two candidates
        beyond = len(below) - places / 2
        return float(np.sqrt(distances**2 / 3 + 2 * scale**2 * beyond).sum())

    return min(sizes_of(spread), key=price)


@dataclass(frozen=True)
class Design:
    """What is public about a threshold before it is drawn; n is the public number of records, the noisy one or a guess.

    Without a mechanism the answer must be +inf without reading the data. The privacy loss includes that of `size`, a
    noisy number of records that is released first.
    """

    terms: Terms
    n: int
    candidates: Candidates
    mechanism: Mechanism | None
    guarantee: Guarantee
    privacy: PrivacyStatement
    size: NoisySize | None = None

    def threshold(self, value: float) -> Threshold:
        """A threshold of this design: all that is stated about it, for its maker and for every reader."""
        terms = self.terms
        return Threshold(
            threshold=value,
            alpha=terms.alpha,
            score=terms.score,
            guarantee=self.guarantee,
            privacy=self.privacy,
            mechanism=self.mechanism,
            candidates=self.candidates.size,
            recipe=self.candidates.recipe,
            size=self.size,
            largest=terms.largest,
        )

    def counted_threshold(self, noisy: tuple[int, ...]) -> Threshold:
        """The threshold that follows from noisy counts of its candidates: no step on private data."""
        value = math.inf
        if self.mechanism is not None:
            assert isinstance(self.mechanism, NoisyHistogram)
            value = float(self.candidates.values[self.mechanism.select(np.array(noisy))])
        return replace(self.threshold(value), noisy_counts=noisy)


@lru_cache(maxsize=1024)
def design(terms: Terms, n: int) -> Design:
    """The design for a number of records, where the target does not move with a noisy one."""
    if terms.mechanism == "slopes":
        return slopes_design(terms, n)
    return listed_design(terms, n, published_list(terms, n))


def sized_design(terms: Terms, size: NoisySize) -> Design:
    """The design for a noisy number of records."""
    n = size.design_for
    if terms.moves:
        return slopes_design(terms, n, size=size)
    if terms.mechanism == "slopes":
        return replace(design(terms, n), size=size)
    return listed_design(terms, n, published_list(terms, n), size)


def listed_design(terms: Terms, n: int, candidates: Candidates, size: NoisySize | None = None) -> Design:
    """The design of a published method over these candidates, for a public n, a guess of it, or a noisy number."""
    return _promised(terms, n, candidates, published_mechanism(terms, n, candidates.size, size), size)


def threshold_at(terms: Terms, counted: Threshold) -> Threshold:
    """The threshold of these terms that follows from the noisy counts of another threshold."""
    assert counted.noisy_counts is not None
    candidates = Candidates.from_recipe(counted.recipe)
    design = listed_design(terms, counted.n or terms.n_min, candidates, counted.size)
    return design.counted_threshold(counted.noisy_counts)


def design_at(terms: Terms, n: int) -> Design:
    """The design for n records: for the noisy number n if there is one, and otherwise for a round number near n."""
    if terms.size_scale is None:
        return design(terms, terms.records_of_design(n))
    return sized_design(terms, terms.noisy_size(n))


def slopes_design(terms: Terms, n: int, tuning: Tuning | None = None, size: NoisySize | None = None) -> Design:
    """The design with the best candidates, slopes and rise, or with these: the least certified target."""
    tuning = tune(terms.known_spread, terms.tuning_inputs(n)) if tuning is None else tuning
    begin = time.perf_counter()
    with np.errstate(under="ignore"):
        mechanism = TargetSearch(terms, n, tuning, size).result()
    log_event(
        "core",
        "plan searched",
        DEBUG,
        seconds=round(time.perf_counter() - begin, 3),
        alpha=1 - terms.level,
        epsilon=terms.per_record,
        neighbors=terms.neighbors,
        n=n if terms.public_n else "secret",
    )
    return _promised(terms, n, tuning.candidates, mechanism, size)


def unanswered_design(terms: Terms) -> Design:
    """A design without a mechanism, whose answer is +inf, over a list of one candidate."""
    return _promised(terms, terms.n_min, Candidates.unit(1), None)


def _promised(
    terms: Terms, n: int, candidates: Candidates, mechanism: Mechanism | None, size: NoisySize | None = None
) -> Design:
    return Design(terms, n, candidates, mechanism, *promised(terms, n, candidates.size, mechanism, size), size)


def published_mechanism(terms: Terms, n: int, m: int, size: NoisySize | None = None) -> Mechanism | None:
    """The mechanism of a published method over m candidates, for n records or a noisy number of them."""
    level, epsilon = terms.level, terms.per_record
    public = n if terms.public_n else None
    counted, size_scale = (n, None) if size is None else (size.counted, size.scale)
    # Noisy counts of all candidates first, then methods that draw one candidate.
    match terms.mechanism:
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, counted, size_scale)
        case PublishedHistogram.name:
            assert terms.noise is not None
            return published_histogram_for(level, terms.noise, m, counted, size_scale)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, public)
        case "pps" if public is None:
            return pps_of_secret_size(terms.alpha, epsilon, m, max(n, terms.n_min))
        case "pps":
            return pps_for(n, terms.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, terms.alpha, epsilon, m)
        case _:
            return split_conformal_for(level, n)


# What a mechanism promises, to its maker and to every reader of a release: its guarantee and its privacy loss.


def promised(
    terms: Terms, n: int, m: int, mechanism: Mechanism | None, size: NoisySize | None = None
) -> tuple[Guarantee, PrivacyStatement]:
    """The guarantee and the privacy loss of a mechanism over m candidates: the same for its maker and every reader.

    `n` is the number of records if it is public; else it is not used.
    """
    # The guarantee: on average over the noisy number, or certified for every n. Without a mechanism +inf is certain.
    if terms.sized and size is not None:
        is_served = mechanism is None or mechanism.serves(terms.level, m, size.counted, size.scale)
        coverage = float(terms.level) if is_served else 0.0
        guarantee = Guarantee("marginal", coverage, delta=None, n=None, n_min=1, sized=True)
    else:
        guarantee = certified_guarantee(terms, n, m, mechanism)

    # The privacy loss: what the maker of counts states, or what is proved.
    if terms.noise is not None:
        loss = None if math.isinf(terms.epsilon) else terms.epsilon
        return guarantee, StatedPrivacy.of(terms.noise, n if terms.public_n else None, loss, terms.size_scale)
    if terms.population is not None:
        guarantee = replace(guarantee, population=str(terms.population))
    if mechanism is None and size is not None:  # a noisy number decides whether there is a mechanism
        return guarantee, sized_privacy(terms)
    of_threshold = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale)
    return guarantee, with_choice(of_threshold, terms.choice)


def certified_guarantee(terms: Terms, n: int, m: int, mechanism: Mechanism | None) -> Guarantee:
    """The guarantee that a certificate gives a mechanism over m candidates, for a public n, or for every secret one."""
    records = RecordCount(n) if terms.public_n else RecordCount(terms.n_min, public=False)
    return certify(mechanism, terms.alpha, m, records, terms.delta)


def sized_privacy(terms: Terms) -> PrivacyStatement:
    """The privacy loss of a release with a noisy number of records: an upper bound over all designs."""
    # The losses of one record by the selection and by the noisy number, and the zCDP loss of a person by both.
    assert terms.size_scale is not None
    records = terms.records_per_person
    selection = Fraction(terms.per_record)
    number = 1 / Fraction(terms.size_scale)
    slopes = terms.mechanism == "slopes"
    ranges = records * selection * (1 if slopes else 2)
    rho = float_above(Fraction(zcdp_of_range(ranges)) + size_zcdp(terms.size_scale, records))

    # A replaced record. Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate); with delta the rate is
    # at least the level. A record of another weight, or in another bin, is one that is removed and one that is added.
    # None of these changes the number of records.
    ratio = 1 / max(terms.rate, 1 - terms.rate) if terms.moves else min(Fraction(2), 1 / terms.level)
    replaced = selection * (2 if not slopes or terms.population is not None else ratio)
    added, changed = float_above(selection + number), float_above(replaced)
    of_threshold = PrivacyStatement(terms.neighbors, terms.epsilon, records, added, changed, rho)
    return with_choice(of_threshold, terms.choice)


# So many offsets are tried for a target that moves with a noisy number.
_TRIES = 8


@dataclass(frozen=True)
class TargetSearch:
    """The search for the least target rank that is certified, for a tuning.

    Target ranks are lines in the number of records: a rate and an offset. The rounding of prior weights, and with it
    the competitor ratio G, depends slightly on the denominator of the offset. Therefore every search ends with steps of
    the offset until the mechanism itself is certified.
    """

    terms: Terms
    n: int
    tuning: Tuning
    size: NoisySize | None = None

    def result(self) -> Slopes | None:
        """The certified mechanism; None if no target rank suffices."""
        if self.terms.public_n:
            return self._least(self._public_line())
        if self.terms.population is not None:
            return self._weighted()
        if self.terms.moves:
            assert self.size is not None
            return self._moving(self.size)
        return self._least(self._conditional_line())

    def _least(self, line: tuple[Fraction, Fraction] | None) -> Slopes | None:
        """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
        if line is None:
            return None
        rate, offset = line
        while not self._is_certified(self._build(rate, offset)):
            offset += Fraction(1, self.terms.unit)
        return None if self.terms.public_n and offset > self.n else self._build(rate, offset)

    def _public_line(self) -> tuple[Fraction, Fraction] | None:
        """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
        n = self.n
        level = self.terms.level
        unit = self.terms.unit
        delta = self.terms.delta
        noise = self._build(Fraction(0), Fraction(1, unit)).noise(self._m)
        if delta is not None:
            target = conditional_target_rank(n, level, delta, noise, unit)
        else:
            ranks = sharp_target_rank(n, level, noise, unit), two_sided_target_rank(n, level, noise, unit)
            target = min((rank for rank in ranks if rank is not None), default=None)
        return None if target is None or target > n else (Fraction(0), target)

    def _conditional_line(self) -> tuple[Fraction, Fraction]:
        """Rate and offset of the training-conditional target line for a secret n."""
        level = self.terms.level
        n_min = self.terms.n_min
        unit = self.terms.unit
        delta = self.terms.delta
        assert delta is not None
        noise = self._build(level, Fraction(1, unit)).noise(self._m)
        # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
        n = max(n_min, self.n)
        rate = tangent_rate(level, delta, n)
        steeper = replace(noise, left=self._build(rate, Fraction(1, unit)).slope_left)
        return rate, conditional_offset(rate, TargetGoal(level, delta, n_min), n, steeper, unit)

    def _moving(self, size: NoisySize) -> Slopes | None:
        """The certified mechanism whose target moves half with the noisy number; None if that is too small."""
        level, rate, unit = self.terms.level, self.terms.rate, self.terms.unit
        noise = self._build(rate, Fraction(1, unit)).noise(self._m)
        offset = moving_offset(level, size.scale, size.counted, noise, unit)
        if offset is None:
            return None
        for step in range(_TRIES):
            mechanism = self._build(rate, offset + Fraction(step, unit))
            if mechanism.serves(level, self._m, size.counted, size.scale):
                return mechanism
        return None

    def _weighted(self) -> Slopes:
        """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
        level, unit, m = self.terms.level, self.terms.unit, self._m
        trial = self._build(level, Fraction(1, unit))
        offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m)), unit)
        while True:
            plain = self._build(level, offset)
            fading = replace(plain, fade=free_fade(plain))
            bonus = weighted_prior_bonus(level, offset, fading.fade_ranks, plain.noise(m))
            with_bonus = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
            if self._is_certified(with_bonus):
                return with_bonus
            offset += Fraction(1, unit)

    def _build(self, rate: Fraction, offset: Fraction) -> Slopes:
        terms = self.terms
        tuning = self.tuning
        plain = slopes_for(rate, offset, tuning.left, tuning.right, terms.neighbors, terms.per_record, terms.weight)
        rise = math.floor(tuning.rise * plain.scale)
        return replace(plain, flat=tuning.flat, rise=rise) if tuning.flat and rise else plain

    def _is_certified(self, mechanism: Slopes) -> bool:
        return certified_guarantee(self.terms, self.n, self._m, mechanism).coverage >= float(self.terms.level)

    @property
    def _m(self) -> int:
        return self.tuning.candidates.size
