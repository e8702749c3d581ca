"""The design of a threshold: everything public about it but the threshold itself.

Candidates, slopes and rise have the least mean price (choice.py). Then comes the smallest target rank that a
certificate accepts; for a secret number of records also a prior bonus of +inf, which counts where only few records are
at hand. Validity rests on `certify` alone, which every reader of a release computes again. The published methods have
parameters of their own.
"""

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.candidates import FINEST, Candidates
from confide.core.choice import LONGEST, Choice, choose, sizes_of
from confide.core.terms import Terms
from confide.core.threshold import Threshold
from confide.guarantee import (
    LARGE_N_MIN,
    Guarantee,
    SlopeNoise,
    conditional_offset,
    conditional_target_rank,
    sharp_offset,
    sharp_prior_bonus,
    sharp_target_rank,
    tangent_rate,
    two_sided_secret,
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
    bins_for,
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
    sized_histogram_for,
    slopes_for,
    split_conformal_for,
    with_choice,
)
from confide.selection import zcdp_of_range
from confide.support import DEBUG, ceil_to, float_above, listening, log_event

_OF_PUBLISHED = 1000
"""The number of candidates of a published method."""

_GONE_AT = 0.15
"""The share of n at which the prior bonus of +inf has decreased to 0."""
_TRIES, _LITTLE = 8, Fraction(1, 20)
"""Number of increments: an offset is increased in ranks, a prior bonus in log-odds."""


@dataclass(frozen=True)
class Design:
    """What is public about a threshold before it is drawn.

    Parameters
    ----------
    terms
        What it follows from, with the number of records below.
    n
        The number of records that it is for: the public one, the noisy one, or a guess.
    candidates
        The list over which the mechanism selects.
    mechanism
        The mechanism; None if the answer must be +inf without reading the data.
    guarantee
        The coverage guarantee, certified for this mechanism.
    privacy
        The privacy loss, with that of a noisy number of records.
    size
        The noisy number of records that was released first, if there is one.
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


@lru_cache(maxsize=1024)
def design(terms: Terms, n: int) -> Design:
    """The design for a number of records, public or guessed.

    Examples
    --------
    >>> from confide.core.request import Request
    >>> chosen = design(Request(alpha=0.1, epsilon=1.0, score="lac").terms[None], 1000)
    >>> chosen.candidates.size, chosen.guarantee.coverage
    (576, 0.9)
    """
    if terms.mechanism == "slopes":
        return slopes_design(terms, n, choose(terms.known_spread, terms.inputs(n)))
    return _published_design(terms, n)


def sized_design(terms: Terms, size: NoisySize) -> Design:
    """The design for a noisy number of records."""
    if terms.mechanism == "slopes":
        return replace(design(terms, size.design_for), size=size)
    return _published_design(terms, size.design_for, size)


def _published_design(terms: Terms, n: int, size: NoisySize | None = None) -> Design:
    """The design of a published method, for a public n, a guess of it, or a noisy number of records."""
    candidates = _published_list(terms, n)
    return _promised(terms, n, candidates, published_mechanism(terms, n, candidates.size, size), size)


def longest_list(terms: Terms) -> Candidates:
    """Candidates of which every design of these terms has some; a published method has 1000, if they are not listed."""
    spread = terms.known_spread
    if isinstance(spread, Candidates):
        return spread
    if terms.mechanism == "none":  # nothing is drawn, so the finest list costs nothing
        return Candidates.quantiles(spread, spread.most or FINEST)
    return Candidates.quantiles(spread, sizes_of(spread)[-1] if terms.mechanism in NESTED else _OF_PUBLISHED)


NESTED = ("slopes", "noisy-histogram")
"""The mechanisms that choose among the lists of a spread."""


def _published_list(terms: Terms, n: int) -> Candidates:
    """The list of a published method; that of a noisy histogram has about the best number of bins for n records."""
    spread = terms.known_spread
    if isinstance(spread, Candidates) or terms.mechanism != "noisy-histogram":
        return longest_list(terms)
    best = math.log(bins_for(n, float(terms.alpha), terms.per_record))
    return Candidates.quantiles(spread, min(sizes_of(spread), key=lambda size: abs(math.log(size) - best)))


def compared_list(terms: Terms) -> Candidates:
    """Candidates that are among those of every source: counts over them recognise the records of a request."""
    spread = terms.known_spread
    return spread if isinstance(spread, Candidates) else Candidates.quantiles(spread, LONGEST)


def slopes_design(terms: Terms, n: int, choice: Choice) -> Design:
    """The design with these candidates, slopes and this rise: the least certified target, and what it promises."""
    return _promised(terms, n, choice.candidates, _slopes(terms, n, choice))


def unanswered_design(terms: Terms) -> Design:
    """A design without a mechanism, whose answer is +inf, over a list of one candidate."""
    return _promised(terms, terms.n_min, Candidates.unit(1), None)


def _promised(
    terms: Terms, n: int, candidates: Candidates, mechanism: Mechanism | None, size: NoisySize | None = None
) -> Design:
    """The design with the guarantee and the privacy loss that follow from its mechanism."""
    return Design(terms, n, candidates, mechanism, *promised(terms, n, candidates.size, mechanism, size), size)


def promised(
    terms: Terms,
    n: int,
    m: int,
    mechanism: Mechanism | None,
    size: NoisySize | None = None,
    *,
    two_sided: bool = True,
) -> tuple[Guarantee, PrivacyStatement]:
    """The guarantee and the privacy loss of a mechanism over m candidates: the same for its maker and every reader.

    Parameters
    ----------
    n
        The number of records if it is public; else it is not used.
    size
        The noisy number of records that was released first, if there is one.
    two_sided
        Whether the two-sided certificate may be used: a reader knows whether the maker needed it.
    """
    public, n_min = (n, None) if terms.public_n else (None, terms.n_min)
    if isinstance(mechanism, NoisyHistogram | PublishedHistogram) and public is None:
        served = size is not None and mechanism.serves(terms.level, m, size.counted, size.scale)
        guarantee = Guarantee("marginal", float(terms.level) if served else 0.0, None, None, 1, sized=True)
    else:
        guarantee = certify(mechanism, terms.alpha, m, public, n_min, terms.delta, two_sided=two_sided)
    if terms.noise is not None:
        loss = None if math.isinf(terms.epsilon) else terms.epsilon
        return guarantee, StatedPrivacy.of(terms.noise, public, loss, terms.size_scale)
    if terms.population is not None:
        guarantee = replace(guarantee, population=str(terms.population))
    alone = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale)
    return guarantee, with_choice(alone, terms.choice)


def price(terms: Terms) -> PrivacyStatement:
    """The privacy loss of a release with a noisy number of records: an upper bound over all designs."""
    assert terms.size_scale is not None
    records, selection, number = terms.records_per_person, Fraction(terms.per_record), 1 / Fraction(terms.size_scale)
    slopes = terms.mechanism == "slopes"
    rho = float_above(Fraction(zcdp_of_range(records * selection)) + size_zcdp(terms.size_scale, records))
    # Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate), and the rate is at least the level. A
    # record of another weight, or in another bin, is one that is removed and one that is added. None of these changes
    # the number of records.
    moved = not slopes or terms.population is not None
    replaced = 2 * selection if moved else selection * min(Fraction(2), 1 / terms.level)
    added, changed = float_above(selection + number), float_above(replaced)
    alone = PrivacyStatement(terms.neighbors, terms.epsilon, records, added, changed, rho if slopes else None)
    return with_choice(alone, terms.choice)


def published_mechanism(terms: Terms, n: int, m: int, size: NoisySize | None = None) -> Mechanism | None:
    """The mechanism of a published method over m candidates, for n records or a noisy number of them."""
    level, epsilon = terms.level, terms.per_record
    public = n if terms.public_n else None
    match terms.mechanism:
        case "noisy-histogram" if size is not None:
            return sized_histogram_for(level, epsilon, size.counted, size.scale)
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, n)
        case PublishedHistogram.name:
            assert terms.noise is not None
            counted, scale = (n, None) if size is None else (size.counted, size.scale)
            return published_histogram_for(level, terms.noise, m, counted, scale)
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


def _slopes(terms: Terms, n: int, choice: Choice) -> Slopes | None:
    """The certified mechanism with the least target; None if no target rank up to a public n suffices."""
    begin = time.perf_counter()
    with np.errstate(under="ignore"):
        mechanism = _Search(terms, n, choice).result()
    if listening("core", DEBUG):
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
    return mechanism


@dataclass(frozen=True)
class _Search:
    """The search for the least target rank that is certified, with chosen candidates, slopes and rise."""

    terms: Terms
    n: int
    choice: Choice

    def result(self) -> Slopes | None:
        """The mechanism."""
        if self.terms.public_n:
            return self._certified(self._public_line())
        if self.terms.population is not None:
            return self._weighted()
        plain = self._certified(self._secret_line())
        if plain is None or self.terms.delta is not None:
            return plain
        return self._two_sided(plain.offset) or self._with_prior_bonus(plain)

    def build(self, rate: Fraction, offset: Fraction) -> Slopes:
        """The mechanism with this target line, with its noise and its rise."""
        terms, choice = self.terms, self.choice
        plain = slopes_for(rate, offset, choice.left, choice.right, terms.neighbors, terms.per_record, terms.weight)
        flat, rise = choice.flat, math.floor(choice.rise * plain.scale)
        return replace(plain, flat=flat, rise=rise) if flat and rise else plain

    def is_certified(self, mechanism: Slopes, n_min: int | None = None) -> bool:
        """Whether the level is certified, for a secret number from n_min on; by default from the n that reach it."""
        terms = self.terms
        public = self.n if terms.public_n else None
        if n_min is None:
            n_min = LARGE_N_MIN if terms.delta is None else terms.n_min
        secret_from = None if terms.public_n else n_min
        promised = certify(mechanism, terms.alpha, self.m, public, secret_from, terms.delta)
        return promised.coverage >= float(terms.level)

    @property
    def m(self) -> int:
        """The number of candidates."""
        return self.choice.candidates.size

    def _certified(self, line: tuple[Fraction, Fraction] | None) -> Slopes | None:
        """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
        if line is None:
            return None
        rate, offset = line
        # The rounding of prior weights, and with it G, depends slightly on the offset's denominator.
        while not self.is_certified(self.build(rate, offset)):
            offset += Fraction(1, self.terms.unit)
        return None if self.terms.public_n and offset > self.n else self.build(rate, offset)

    def _public_line(self) -> tuple[Fraction, Fraction] | None:
        """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
        n, level, unit, delta = self.n, self.terms.level, self.terms.unit, self.terms.delta
        noise = self.build(Fraction(0), Fraction(1, unit)).noise(self.m)
        if delta is not None:
            target = conditional_target_rank(n, level, delta, noise, unit)
        else:
            ranks = sharp_target_rank(n, level, noise, unit), two_sided_target_rank(n, level, noise, unit)
            target = min((rank for rank in ranks if rank is not None), default=None)
        return None if target is None or target > n else (Fraction(0), target)

    def _secret_line(self) -> tuple[Fraction, Fraction]:
        """Rate and offset of the target line for a secret n."""
        level, n_min, unit, delta = self.terms.level, self.terms.n_min, self.terms.unit, self.terms.delta
        noise = self.build(level, Fraction(1, unit)).noise(self.m)
        if delta is not None:
            # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
            n = max(n_min, self.n)
            rate = tangent_rate(level, delta, n)
            steeper = replace(noise, left=self.build(rate, Fraction(1, unit)).slope_left)
            return rate, conditional_offset(rate, level, delta, n_min, n, steeper, unit)
        return level, sharp_offset(level, noise, unit)

    def _two_sided(self, most: Fraction) -> Slopes | None:
        """Offset and prior bonus of the two-sided certificate; None if the offset reaches `most`.

        The bonus ends at a seventh of n, if the privacy loss allows it: with a slower decrease the offset is less.
        """
        terms, level, unit = self.terms, self.terms.level, self.terms.unit
        trial, parts = self.build(level, Fraction(1, unit)), unit // level.denominator
        needed = 2.5 - math.log(terms.alpha)  # approximate constant prior bonus of +inf that suffices, in log-odds
        fade = needed * trial.scale / (_GONE_AT * max(terms.n_min, self.n))
        # A multiple of `parts` stays an integer if the offset has a smaller denominator.
        fade = min(max(1, math.ceil(fade / parts)), free_fade(trial) // parts) * parts / trial.scale
        few = float((most + 1) / (1 - level))  # about the n from which on a target rank is among the records
        asked = level, fade, needed + fade * few, terms.n_min, trial.noise(self.m), unit

        def exact(offset: Fraction) -> SlopeNoise:
            return self.build(level, offset).noise(self.m)

        # The certificate checks all n in any case. For a guess, mostly the requirement of a few suffices, without a
        # second check. For a noisy number, the search is itself the check.
        guessed = terms.size_scale is None
        for sampled in (True, False) if guessed else (False,):
            least = two_sided_secret(*asked, sampled=sampled, exact=None if guessed else exact)
            if least is None:
                return None
            offset, ahead = least
            # Again because of the rounding of prior weights: either value may have to increase slightly.
            for more in range(1 if sampled else _TRIES):
                plain = self.build(level, offset + more * ceil_to(_LITTLE, unit))
                if plain.offset >= most:
                    return None
                head_start = math.ceil((ahead + float(more * _LITTLE)) * plain.scale)
                candidate = replace(plain, fade=round(fade * plain.scale), head_start=head_start)
                if self.is_certified(candidate, terms.n_min):
                    return candidate
        return None

    def _weighted(self) -> Slopes:
        """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
        terms, level, unit, m = self.terms, self.terms.level, self.terms.unit, self.m
        trial = self.build(level, Fraction(1, unit))
        offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m)), unit)
        while True:
            plain = self.build(level, offset)
            fading = replace(plain, fade=free_fade(plain))
            bonus = weighted_prior_bonus(level, offset, fading.fade_ranks, plain.noise(m))
            with_bonus = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
            if self.is_certified(with_bonus, terms.n_min):
                return with_bonus
            offset += Fraction(1, unit)  # the rounding of prior weights, and with it G, depends slightly on the offset

    def _with_prior_bonus(self, plain: Slopes) -> Slopes:
        """The least prior bonus of +inf that suffices for every n >= n_min, with the fastest admissible decrease."""
        terms = self.terms
        while True:
            fading, noise = replace(plain, fade=free_fade(plain)), plain.noise(self.m)
            bonus = sharp_prior_bonus(terms.level, plain.offset, fading.fade_ranks, terms.n_min, noise)
            with_bonus = replace(fading, head_start=math.ceil(bonus * plain.unit * plain.left))
            if self.is_certified(with_bonus, terms.n_min):
                return with_bonus
            # The certificate of a rare offset needs slightly more.
            plain = self.build(terms.level, plain.offset + Fraction(1, terms.unit))
