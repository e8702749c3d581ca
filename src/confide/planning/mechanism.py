"""From terms to a mechanism: slopes and rise, then the smallest target rank that is certified."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from confide.guarantee import (
    LARGE_N_MIN,
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
    Slopes,
    certify,
    free_fade,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    slopes_for,
    split_conformal_for,
)
from confide.planning.choice import PARTS
from confide.planning.terms import Terms
from confide.support import (
    DEBUG,
    ceil_to,
    listening,
    log_event,
)

_GONE_AT = 0.15
"""The share of n_typical at which the prior bonus of +inf has decreased to 0."""
_TRIES, _LITTLE = 8, Fraction(1, 20)
"""Number of increments: an offset is increased in ranks, a prior bonus in log-odds."""

_Build = Callable[[Fraction, Fraction], Slopes]
"""From rate and offset of the target line to the mechanism, with its noise and its rise."""


def mechanism_for(request: Terms) -> Mechanism | None:
    """The mechanism for validated terms; None if the answer must be +inf without reading the data.

    Examples
    --------
    >>> from confide.planning import Terms
    >>> request = Terms.of(
    ...     alpha=0.1, epsilon=1.0, neighbors="replace_one", n=1000, candidates=1000, mechanism="pps"
    ... )
    >>> round(float(mechanism_for(request).level), 4)
    0.9289
    """
    if request.mechanism == "slopes":
        return slopes_for_request(request)
    n, m, level, epsilon = request.n, request.m, request.level, request.per_record
    match request.mechanism:
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, m, n, request.n_min)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, n)
        case "pps" if n is None:
            return pps_of_secret_size(request.alpha, epsilon, m, request.n_known)
    assert n is not None  # the terms were validated
    match request.mechanism:
        case "pps":
            return pps_for(n, request.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, request.alpha, epsilon, m)
        case "none":
            return split_conformal_for(level, n)


@lru_cache(maxsize=1024)
def slopes_for_request(request: Terms) -> Slopes | None:
    """The slope mechanism for validated terms, or None if the answer must be +inf without reading the data."""
    begin = time.perf_counter()
    mechanism = _slopes(request)
    if listening("planning", DEBUG):
        log_event(
            "planning",
            "plan searched",
            DEBUG,
            seconds=round(time.perf_counter() - begin, 3),
            alpha=1 - request.level,
            epsilon=request.per_record,
            neighbors=request.neighbors,
            n="secret" if request.n is None else request.n,
        )
    return mechanism


@np.errstate(under="ignore")
def _slopes(request: Terms) -> Slopes | None:
    choice = request.choice
    left, right = request.slopes or (choice.left, PARTS - choice.left)

    @cache
    def build(rate: Fraction, offset: Fraction) -> Slopes:
        plain = slopes_for(rate, offset, left, right, request.neighbors, request.per_record, request.weight)
        flat, rise = choice.flat, math.floor(choice.rise * plain.scale)
        return replace(plain, flat=flat, rise=rise) if flat and rise else plain

    if request.n is not None:
        return _certified(_public_line(request, build), request, build)
    if request.population is not None:
        return _weighted(request, build)
    plain = _certified(_private_line(request, build), request, build)
    if plain is None or request.delta is not None:
        return plain
    return _two_sided(request, build, plain.offset) or _with_head_start(plain, request)


def _certified(line: tuple[Fraction, Fraction] | None, request: Terms, build: _Build) -> Slopes | None:
    """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
    if line is None:
        return None
    rate, offset = line
    # The rounding of prior weights, and with it G, depends slightly on the offset's denominator.
    while not _is_certified(build(rate, offset), request):
        offset += Fraction(1, request.unit)
    return None if request.n is not None and offset > request.n else build(rate, offset)


def _public_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction] | None:
    """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
    n, level, unit = request.n or 0, request.level, request.unit
    noise = build(Fraction(0), Fraction(1, unit)).noise(request.m)
    if request.delta is not None:
        target = conditional_target_rank(n, level, request.delta, noise, unit)
    else:
        ranks = sharp_target_rank(n, level, noise, unit), two_sided_target_rank(n, level, noise, unit)
        target = min((rank for rank in ranks if rank is not None), default=None)
    return None if target is None or target > n else (Fraction(0), target)


def _private_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction]:
    """Rate and offset of the target line for a secret n."""
    level, n_min, unit = request.level, request.n_min, request.unit
    noise = build(level, Fraction(1, unit)).noise(request.m)
    if request.delta is not None:
        # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
        n_typical = max(n_min, request.n_typical)
        rate = tangent_rate(level, request.delta, n_typical)
        steeper = replace(noise, left=build(rate, Fraction(1, unit)).slope_left)
        return rate, conditional_offset(rate, level, request.delta, n_min, n_typical, steeper, unit)
    return level, sharp_offset(level, noise, unit)


def _is_certified(mechanism: Slopes, request: Terms) -> bool:
    """Whether the target is certified (from the n on that reach it, if n is secret)."""
    n_min = LARGE_N_MIN if request.delta is None else request.n_min
    secret_from = n_min if request.n is None else None
    promised = certify(mechanism, request.alpha, request.m, request.n, secret_from, request.delta)
    return promised.coverage >= float(request.level)


def _two_sided(request: Terms, build: _Build, most: Fraction) -> Slopes | None:
    """The mechanism with the offset and prior bonus of the two-sided certificate; None if the offset reaches `most`.

    The bonus ends at a seventh of n_typical, if the privacy loss allows it: with a slower decrease the offset is less.
    """
    level, unit = request.level, request.unit
    trial, parts = build(level, Fraction(1, unit)), unit // level.denominator
    needed = 2.5 - math.log(request.alpha)  # approximate constant prior bonus of +inf that suffices, in log-odds
    fade = needed * trial.scale / (_GONE_AT * max(request.n_min, request.n_typical))
    # A multiple of `parts` stays an integer if the offset has a smaller denominator.
    fade = min(max(1, math.ceil(fade / parts)), free_fade(trial) // parts) * parts / trial.scale
    few = float((most + 1) / (1 - level))  # about the n from which on a target rank is among the records
    terms = level, fade, needed + fade * few, request.n_min, trial.noise(request.m), unit

    def exact(offset: Fraction) -> SlopeNoise:
        return build(level, offset).noise(request.m)

    # The certificate checks all n in any case. For a guess, mostly the requirement of a few suffices, without a second
    # check. For a noisy number, the search is itself the check.
    guessed = request.size_scale is None
    for sampled in (True, False) if guessed else (False,):
        least = two_sided_secret(*terms, sampled=sampled, exact=None if guessed else exact)
        if least is None:
            return None
        offset, ahead = least
        # Again because of the rounding of prior weights: either value may have to increase slightly.
        for more in range(1 if sampled else _TRIES):
            plain = build(level, offset + more * ceil_to(_LITTLE, unit))
            if plain.offset >= most:
                return None
            head_start = math.ceil((ahead + float(more * _LITTLE)) * plain.scale)
            candidate = replace(plain, fade=round(fade * plain.scale), head_start=head_start)
            if certify(candidate, request.alpha, request.m, None, request.n_min, None).coverage >= float(level):
                return candidate
    return None


def _weighted(request: Terms, build: _Build) -> Slopes:
    """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
    level, unit, m = request.level, request.unit, request.m
    trial = build(level, Fraction(1, unit))
    offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m)), unit)
    while True:
        plain = build(level, offset)
        fading = replace(plain, fade=free_fade(plain))
        bonus = weighted_prior_bonus(level, offset, fading.fade_ranks, plain.noise(m))
        with_head_start = replace(fading, head_start=math.ceil(bonus * (plain.unit * plain.heaviest * plain.left)))
        if certify(with_head_start, request.alpha, m, None, request.n_min, None).coverage >= float(level):
            return with_head_start
        offset += Fraction(1, unit)  # the rounding of prior weights, and with it G, depends slightly on the offset


def _with_head_start(mechanism: Slopes, request: Terms) -> Slopes:
    """Set the least prior bonus of +inf that suffices for every n >= n_min, with the fastest admissible decrease."""
    fading = replace(mechanism, fade=free_fade(mechanism))
    noise = mechanism.noise(request.m)
    bonus = sharp_prior_bonus(request.level, mechanism.offset, fading.fade_ranks, request.n_min, noise)
    return replace(fading, head_start=math.ceil(bonus * mechanism.unit * mechanism.left))
