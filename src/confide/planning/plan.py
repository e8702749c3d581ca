"""What a calibration will cost and promise, decided before any data is touched.

A plan fixes the whole mechanism: slopes, target rank, noise scale. It depends on public numbers only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from html import escape

import numpy as np

from confide.candidates import Candidates
from confide.guarantee import (
    Guarantee,
    mean_overshoot,
    private_head_start,
    private_offset,
    private_shift,
    public_shift,
    public_target,
    tangent_rate,
)
from confide.mechanisms import (
    UNIT,
    Mechanism,
    Neighbors,
    PrivacyStatement,
    Slopes,
    certify,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    privacy_statement,
    slopes_for,
    split_conformal_for,
)
from confide.planning.request import Request, check_request
from confide.planning.slope_choice import best_slopes, expected_drift
from confide.selection import Selector
from confide.support import MOST_RECORDS, Level, aligned, ceil_to, decimal_text, positive_integer


@dataclass(frozen=True)
class Plan:
    """The mechanism that answers a request, and what it promises and costs. Nothing here depends on data.

    Parameters
    ----------
    request
        What was asked for.
    mechanism
        Slopes, target rank and noise scale; None if no target rank serves and the answer is +inf without the data.
    n
        The number of records that `target_rank`, `expected_excess` and `expected_coverage` are stated for.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000)
    >>> round(p.expected_coverage, 3), p.records_needed
    (0.908, 69)
    """

    request: Request
    mechanism: Slopes | None
    n: int

    @property
    def guarantee(self) -> Guarantee:
        """What the calibration will promise."""
        r = self.request
        return certify(self.mechanism, r.alpha, r.candidates, r.n, r.n_min if r.n is None else None, r.delta)

    @property
    def privacy(self) -> PrivacyStatement:
        """What it will cost."""
        r = self.request
        return privacy_statement(self.mechanism, r.neighbors, r.records_per_person, r.selector)

    @property
    def target_rank(self) -> float:
        """The rank that the mechanism aims at with n records; above n it stands for +inf."""
        return float(self.mechanism.target(self.n)) if self.mechanism else math.inf

    @property
    def nonprivate_rank(self) -> int:
        """ceil((n+1)(1-alpha)), the rank of split conformal prediction without privacy."""
        return math.ceil(self.request.level * (self.n + 1))

    @property
    def expected_excess(self) -> float:
        """Expected ranks above (n+1)(1-alpha) on evenly spread scores: what privacy costs, in records."""
        slopes, m, most = self.mechanism, self.request.candidates, float(self.request.alpha * (self.n + 1))
        if slopes is None:
            return most
        ranks = self.target_rank - float(self.request.level * (self.n + 1))
        return min(ranks + expected_drift(slopes.slope_left, slopes.slope_right, m, self.n / m, slopes.selector), most)

    @property
    def expected_coverage(self) -> float:
        """Mean coverage on evenly spread scores."""
        return float(self.request.level) + self.expected_excess / (self.n + 1)

    @property
    def coverage_at_most(self) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin (docs/theory.md, Theorem 5)."""
        if self.mechanism is None:
            return 1.0
        over = mean_overshoot(self.mechanism.slope_right, self.request.candidates, self.mechanism.selector)
        return min(1.0, (self.target_rank + over + 1) / (self.n + 1))

    @property
    def records_needed(self) -> int:
        """The smallest number of records with a target rank among them: with fewer, +inf is the likely answer."""
        if self.mechanism is not None and (known := self.mechanism.records_needed) is not None:
            return known
        enough = 1
        while slopes_for_request(replace(self.request, n=enough)) is None:
            enough *= 2
        short = enough // 2
        while enough - short > 1:
            middle = (short + enough) // 2
            served = slopes_for_request(replace(self.request, n=middle)) is not None
            short, enough = (short, middle) if served else (middle, enough)
        return enough

    @property
    def records_for_comfort(self) -> int:
        """Five times the records needed: with fewer, a threshold beyond all scores is drawn now and then."""
        return 5 * self.records_needed

    def __str__(self) -> str:
        privacy, serves = self.privacy, self.nonprivate_rank <= self.n
        with_n = [
            ("target rank", self._rank()),
            ("rank without privacy", f"{self.nonprivate_rank}" if serves else "+inf"),
            ("expected coverage", f"{self.expected_coverage:.4f}, on evenly spread scores"),
            ("cost of privacy", f"about {self.expected_excess:.1f} records more covered than asked for"),
            ("coverage at most", f"{self.coverage_at_most:.4f} on average, for continuous scores"),
        ]
        always = [
            ("records needed", f"{self.records_needed} at the least; with fewer the threshold is likely +inf"),
            (
                "records for comfort",
                f"{self.records_for_comfort}; with fewer it may be +inf or lie far beyond the scores",
            ),
            ("loss, add or remove one", _loss(privacy.loss("add_remove"))),
            ("loss, replace one", _loss(privacy.loss("replace_one"))),
            ("candidate thresholds", str(self.request.candidates)),
        ]
        return (
            f"promise: {self.guarantee}\nprivacy: {privacy}\n"
            f"With {self.n} calibration records:\n{aligned(with_n)}\n"
            f"With any number of records:\n{aligned(always)}"
        )

    def _rank(self) -> str:
        if math.isinf(self.target_rank):
            return "none serves: the answer is +inf, without touching the data"
        beyond = ", above the number of records: +inf is the likely answer" if self.target_rank > self.n else ""
        return f"{self.target_rank:.2f}{beyond}"

    def _repr_html_(self) -> str:
        """What `print` shows, for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"


def _loss(value: float) -> str:
    return "unlimited: the number of records is public" if math.isinf(value) else decimal_text(value)


def plan(
    alpha: Level,
    epsilon: float | None = None,
    n: int = 1000,
    *,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    candidates: int | Candidates = 1000,
    n_min: int = 1,
    n_typical: int | None = None,
    delta: Level | None = None,
    records_per_person: int = 1,
    selector: Selector | None = None,
    slopes: tuple[int, int] | None = None,
    shift: float | None = None,
) -> Plan:
    """Say what a private calibration will promise and cost, before any data is touched.

    Parameters
    ----------
    alpha
        Miscoverage level in (0, 1): a float, a decimal string or a `Fraction`.
    epsilon
        Privacy loss per person, in [1e-6, 1e6]. Give this or `rho`.
    n
        Number of calibration records: the public number under `replace_one`; under `add_remove` only a guess to
        state the cost for, which the mechanism never uses.
    rho
        zCDP loss per person; selects the exponential mechanism with epsilon = sqrt(8 rho).
    neighbors
        `"add_remove"` (n stays secret) or `"replace_one"` (n is public).
    candidates
        The candidate thresholds, or their number, +inf included.
    n_min
        Public lower bound on the secret number of records (`add_remove` only). The promise holds for every n >= n_min.
    n_typical
        Public guess of the secret number of records, used only to place a training-conditional target
        (default: the larger of n_min and 1000). It touches efficiency, never validity.
    delta
        Ask for "coverage at least 1-alpha with probability 1-delta over the calibration data" instead of the
        marginal guarantee; in (0, 1).
    records_per_person
        Public bound on how many records one person owns; each record then gets epsilon/records_per_person.
    selector
        `"permute_and_flip"` (default) or `"exponential"` (default with `rho`).
    slopes
        Positive integers (left, right) to override the choice of slopes; only their ratio matters.
    shift
        Ranks above (1-alpha)(n+1) to aim at, to override the choice of target (marginal guarantee only); the
        coverage that is then guaranteed is computed, and may be below 1-alpha.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one")
    >>> p.target_rank, p.nonprivate_rank
    (908.0625, 901)
    """
    if isinstance(candidates, Candidates):
        candidates = candidates.size
    return make_plan(check_request(**locals()), n)  # nothing but the arguments is local


def make_plan(request: Request, n: int) -> Plan:
    """The plan for a checked request, stated for n records."""
    return Plan(request, slopes_for_request(request), positive_integer("n", n, most=MOST_RECORDS))


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def slopes_for_request(request: Request) -> Slopes | None:
    """The mechanism that answers a request, or None if +inf has to be answered without touching the data."""
    mechanism = slopes_without_head_start(request)
    if mechanism is None or request.neighbors == "replace_one" or request.delta is not None:
        return mechanism
    return _with_head_start(mechanism, request)


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def slopes_without_head_start(request: Request) -> Slopes | None:
    """The mechanism before +inf gets its head start, which takes as long again and which no cost depends on."""
    epsilon = max(request.per_record, 0.5)  # the problem only depends on n * epsilon: small losses are scaled
    left, right = request.slopes or best_slopes(
        request.level, epsilon, request.neighbors, request.candidates, request.selector
    )

    def build(rate: Fraction, offset: Fraction) -> Slopes:
        return slopes_for(rate, offset, left, right, request.neighbors, request.per_record, request.selector)

    if request.neighbors == "replace_one":
        target = _public_target(request, build)
        return None if target is None else build(Fraction(0), target)
    return build(*_private_line(request, build))


def mechanism_for(request: Request) -> Mechanism | None:
    """The mechanism for a checked request; None if +inf has to be answered without touching the data.

    Examples
    --------
    >>> from fractions import Fraction
    >>> request = Request(
    ...     Fraction(1, 10), 1.0, "replace_one", 1000, 1, 1000, None, 1000, 1, "permute_and_flip", None, None, "pps"
    ... )
    >>> round(float(mechanism_for(request).level), 4)
    0.9289
    """
    n, m, level, epsilon = request.n, request.candidates, request.level, request.per_record
    match request.mechanism:
        case "slopes":
            return slopes_for_request(request)
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, m, n, request.n_min)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, n)
    assert n is not None  # the request was checked
    match request.mechanism:
        case "pps":
            return pps_for(n, request.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, request.alpha, epsilon, m)
        case "none":
            return split_conformal_for(level, n)


def _public_target(request: Request, build: Callable[[Fraction, Fraction], Slopes]) -> Fraction | None:
    """The target rank for a public n, or None if no rank up to n serves."""
    n, level, m = request.n or 0, request.level, request.candidates
    trial = build(Fraction(0), Fraction(1))
    if request.shift is not None:
        target: Fraction | None = ceil_to(level * (n + 1) + request.shift, UNIT)
    elif request.delta is not None:
        target = public_target(n, level, request.delta, trial.slope_left, m, request.selector, UNIT)
    else:
        target = public_shift(n, level, trial.slope_left, trial.slope_right, m, request.selector, UNIT)
    return None if target is None or target > n else target


def _private_line(request: Request, build: Callable[[Fraction, Fraction], Slopes]) -> tuple[Fraction, Fraction]:
    """Rate and offset of the target line for a secret n."""
    level, m, n_min = request.level, request.candidates, request.n_min
    unit = level.denominator * -(-UNIT // level.denominator)
    trial = build(level, Fraction(1, unit))
    if request.delta is not None:
        # The rate exceeds the level, which changes the privacy map: settle the rate first, then slopes and offset.
        n_typical = max(n_min, request.n_typical)
        rate = tangent_rate(level, request.delta, n_typical)
        slope = build(rate, Fraction(1, unit)).slope_left
        return rate, private_offset(rate, level, request.delta, n_min, n_typical, slope, m, request.selector, unit)
    if request.shift is not None:
        return level, ceil_to(request.shift, unit)
    return level, private_shift(level, trial.slope_left, trial.slope_right, m, request.selector, unit)


def _with_head_start(mechanism: Slopes, request: Request) -> Slopes:
    left, right = mechanism.slope_left, mechanism.slope_right
    choices = request.candidates, request.selector
    ahead = private_head_start(request.level, mechanism.offset, request.n_min, left, right, *choices)
    return replace(mechanism, head_start=math.ceil(ahead * mechanism.unit * mechanism.left))
