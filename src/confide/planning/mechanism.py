"""From a request to the mechanism that answers it: slopes and rise, then the smallest target rank that is certified."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.guarantee import (
    NEVER_SMALL,
    private_head_start,
    private_offset,
    private_shift,
    public_shift,
    public_target,
    tangent_rate,
    two_sided_secret,
    two_sided_shift,
    weighted_head_start,
    weighted_loss,
)
from confide.mechanisms import (
    UNIT,
    Mechanism,
    Slopes,
    certify,
    fade_for,
    noisy_histogram_for,
    opendp_quantile_for,
    pcoqs_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    published_pcoqs_for,
    slopes_for,
    split_conformal_for,
)
from confide.planning.choice import PARTS
from confide.planning.terms import Terms
from confide.support import DEBUG, ceil_to, tell

_GONE_AT = 0.15
"""The share of n_typical at which the head start of +inf is gone."""
_TRIES, _LITTLE = 8, Fraction(1, 20)
"""How often a little is added to an offset, in ranks, and to a head start, in log-odds."""

_Build = Callable[[Fraction, Fraction], Slopes]
"""From rate and offset of the target line to the mechanism, with its noise and its rise."""


def mechanism_for(request: Terms) -> Mechanism | None:
    """The mechanism for a checked request; None if +inf has to be answered without touching the data.

    Examples
    --------
    >>> from confide.planning.terms import Terms
    >>> request = Terms.of(
    ...     alpha=0.1, epsilon=1.0, neighbors="replace_one", n=1000, candidates=1000, mechanism="pps"
    ... )
    >>> round(float(mechanism_for(request).level), 4)
    0.9289
    """
    n, m, level, epsilon = request.n, request.m, request.level, request.per_record
    match request.mechanism:
        case "slopes":
            return slopes_for_request(request)
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, m, n, request.n_min)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, n)
        case "pps" if n is None:
            return pps_of_secret_size(request.alpha, epsilon, m, request.n_known)
    assert n is not None  # the request was checked
    match request.mechanism:
        case "pps":
            return pps_for(n, request.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, request.alpha, epsilon, m)
        case "pcoqs":
            return pcoqs_for(n, level, request.rho_per_record, m)
        case "pcoqs-published":
            return published_pcoqs_for(n, level, request.rho_per_record)
        case "none":
            return split_conformal_for(level, n)


@lru_cache(maxsize=1024)
def slopes_for_request(request: Terms) -> Slopes | None:
    """The slope mechanism that answers a request, or None if +inf has to be answered without touching the data."""
    begin = time.perf_counter()
    found = _slopes(request)
    tell(
        "planning",
        "plan searched",
        DEBUG,
        seconds=round(time.perf_counter() - begin, 3),
        alpha=1 - request.level,
        epsilon=request.per_record,
        neighbors=request.neighbors,
        n="secret" if request.n is None else request.n,
    )
    return found


@np.errstate(under="ignore")
def _slopes(request: Terms) -> Slopes | None:
    choice = request.choice
    left, right = request.slopes or (choice.left, PARTS - choice.left)

    def build(rate: Fraction, offset: Fraction) -> Slopes:
        plain = slopes_for(
            rate, offset, left, right, request.neighbors, request.per_record, request.selector, request.weight
        )
        flat, rise = choice.flat, math.floor(choice.rise * plain.scale)
        return replace(plain, flat=flat, rise=rise) if flat and rise else plain

    if request.n is not None:
        return _settled(_public_line(request, build), request, build)
    if request.population is not None:
        return _weighted(request, build)
    plain = _settled(_private_line(request, build), request, build)
    if plain is None or request.delta is not None:
        return plain
    lower = _two_sided(request, build, plain.offset) if request.shift is None else None
    return lower or _with_head_start(plain, request)


def _settled(line: tuple[Fraction, Fraction] | None, request: Terms, build: _Build) -> Slopes | None:
    """The mechanism with the least target from this line on that is certified; None if a public n does not reach it."""
    if line is None:
        return None
    rate, offset = line
    # How heights are rounded, and with it G, depends a little on the offset's denominator.
    while not _serves(build(rate, offset), request):
        offset += Fraction(1, _unit(request))
    return None if request.n is not None and offset > request.n else build(rate, offset)


def _unit(request: Terms) -> int:
    """Target ranks are multiples of 1/unit."""
    denominator = request.level.denominator
    return UNIT if request.n is not None else denominator * -(-UNIT // denominator)


def _public_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction] | None:
    """Rate 0 and the target rank for a public n, or None if no rank up to n serves."""
    n, level, unit = request.n or 0, request.level, _unit(request)
    trial = build(Fraction(0), Fraction(1, unit))
    rivals, selector = trial.rivals(request.m), request.selector
    if request.shift is not None:
        target: Fraction | None = ceil_to(level * (n + 1) + request.shift, unit)
    elif request.delta is not None:
        target = public_target(n, level, request.delta, trial.slope_left, rivals, selector, unit)
    else:
        terms = n, level, trial.slope_left, trial.slope_right, rivals, selector, unit
        found = public_shift(*terms), two_sided_shift(*terms, step=trial.step(request.m))
        target = min((one for one in found if one is not None), default=None)
    return None if target is None or target > n else (Fraction(0), target)


def _private_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction]:
    """Rate and offset of the target line for a secret n."""
    level, n_min, unit, selector = request.level, request.n_min, _unit(request), request.selector
    trial = build(level, Fraction(1, unit))
    rivals = trial.rivals(request.m)
    if request.delta is not None:
        # The rate exceeds the level, which changes the privacy map: settle the rate first, then slopes and offset.
        n_typical = max(n_min, request.n_typical)
        rate = tangent_rate(level, request.delta, n_typical)
        slope = build(rate, Fraction(1, unit)).slope_left
        return rate, private_offset(rate, level, request.delta, n_min, n_typical, slope, rivals, selector, unit)
    if request.shift is not None:
        return level, ceil_to(request.shift, unit)
    return level, private_shift(level, trial.slope_left, trial.slope_right, rivals, selector, unit)


def _serves(mechanism: Slopes, request: Terms) -> bool:
    """Whether the target is certified (from the n on that reach it, if n is secret), or was asked for as it is."""
    if request.shift is not None:
        return True
    n_min = NEVER_SMALL if request.delta is None else request.n_min
    secret_from = n_min if request.n is None else None
    promised = certify(mechanism, request.alpha, request.m, request.n, secret_from, request.delta)
    return promised.coverage >= float(request.level)


def _two_sided(request: Terms, build: _Build, most: Fraction) -> Slopes | None:
    """With the offset and head start that the two-sided certificate asks for; None if it asks for `most` or more.

    The head start is gone at a seventh of n_typical, if the loss has room for that: slower fading asks for less offset.
    """
    level, unit = request.level, _unit(request)
    trial, parts = build(level, Fraction(1, unit)), unit // level.denominator
    needed = 2.5 - math.log(request.alpha)  # about what head start +inf needs where it does not fade, in log-odds
    fade = needed * trial.scale / (_GONE_AT * max(request.n_min, request.n_typical))
    # A multiple of `parts` remains a whole number where the offset has a smaller denominator.
    fade = min(max(1, math.ceil(fade / parts)), fade_for(trial) // parts) * parts / trial.scale
    few = float((most + 1) / (1 - level))  # about the n from which on a target rank is among the records
    terms = request.n_min, trial.slope_left, trial.slope_right, trial.rivals(request.m), request.selector, unit
    step = trial.step(request.m)
    # The certificate asks all n in any case: mostly what some of them need is enough, and they need not be asked twice.
    for sampled in (True, False):
        found = two_sided_secret(level, fade, needed + fade * few, *terms, step=step, sampled=sampled)
        if found is None:
            return None
        offset, ahead = found
        # Again the rounding of heights: it may ask for a little more of either.
        for more in range(1 if sampled else _TRIES):
            plain = build(level, offset + more * ceil_to(_LITTLE, unit))
            if plain.offset >= most:
                return None
            head_start = math.ceil((ahead + float(more * _LITTLE)) * plain.scale)
            made = replace(plain, fade=round(fade * plain.scale), head_start=head_start)
            if certify(made, request.alpha, request.m, None, request.n_min, None).coverage >= float(level):
                return made
    return None


def _weighted(request: Terms, build: _Build) -> Slopes:
    """The least offset that is certified where records weigh differently, and the head start of +inf with it."""
    level, unit, m, selector = request.level, _unit(request), request.m, request.selector
    trial = build(level, Fraction(1, unit))
    offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m), selector), unit)
    while True:
        plain = build(level, offset)
        fading = replace(plain, fade=fade_for(plain))
        ahead = weighted_head_start(
            level, offset, fading.fade_ranks, plain.slope_left, plain.rivals(m), selector
        ) * (plain.unit * plain.heaviest * plain.left)  # fmt: skip
        made = replace(fading, head_start=math.ceil(ahead))
        if certify(made, request.alpha, m, None, request.n_min, None).coverage >= float(level):
            return made
        offset += Fraction(1, unit)  # how heights are rounded, and with it G, depends a little on the offset


def _with_head_start(mechanism: Slopes, request: Terms) -> Slopes:
    """With the least head start of +inf that serves every n from n_min on, fading as fast as the loss has room for."""
    fading = replace(mechanism, fade=fade_for(mechanism))
    ahead = private_head_start(
        request.level, mechanism.offset, fading.fade_ranks, request.n_min,
        mechanism.slope_left, mechanism.slope_right, mechanism.rivals(request.m), request.selector,
    )  # fmt: skip
    return replace(fading, head_start=math.ceil(ahead * mechanism.unit * mechanism.left))
