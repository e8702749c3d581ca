"""Thresholds from noisy counts that another engine made (docs/theory-published-counts.md)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from confide.candidates import Candidates
from confide.core.fingerprint import ModelFingerprint
from confide.core.metadata import Metadata
from confide.core.published_counts import CountsCalibration, PublishedCounts
from confide.core.release import NO_PAYER, Payer, prepare, release
from confide.core.sources import GivenCounts
from confide.core.texts import remark, warn_of_choices
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.mechanisms import StatedPrivacy, published_histogram_for
from confide.support import (
    Level,
    caller_stacklevel,
    exact_level,
    library_versions,
    log_event,
    positive_integer,
    takes_alpha,
)


@dataclass(frozen=True)
class CountsRequest:
    """A validated request for counts that another engine made; `release` accepts it like a `Request`."""

    counts: PublishedCounts
    alpha: Fraction
    delta: float | None
    n_min: int
    words: Metadata

    public_n: ClassVar[bool] = False

    @property
    def candidates(self) -> Candidates:
        """The candidates over which the engine counted."""
        return self.counts.candidates

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """The candidates, which do not depend on the number of records."""
        return self.candidates

    def release(
        self, look: Callable[[], Mapping[None, PublishedCounts]], *, charge_first: bool = False
    ) -> CountsCalibration:
        """Check the counts as far as they show how they were made, and state the result."""
        counts = look()[None]
        note, level, m = counts.check(), 1 - self.alpha, len(counts)
        n_min = None if counts.n is not None else self.n_min
        mechanism = published_histogram_for(level, counts.noise, m, counts.n, n_min, self.delta)
        guarantee = mechanism.guarantee(level, m, counts.n, n_min, self.delta)
        assert guarantee is not None  # the target was chosen so that it holds
        made = CountsCalibration(
            threshold=float(counts.candidates.values[mechanism.choose(counts.counts, counts.n)]),
            alpha=self.alpha,
            guarantee=guarantee,
            privacy=StatedPrivacy.of(counts.noise, counts.n, counts.epsilon),
            mechanism=mechanism,
            candidates=m,
            recipe=counts.candidates.recipe,
            score=counts.score,
            versions=library_versions(),
        )
        released: CountsCalibration = self.words.of(made)  # type: ignore[assignment]
        log_event("calibration", "released from published counts", score=counts.score, alpha=self.alpha)
        warn_of_choices(released)
        for text in (note, remark(released)):
            if text:
                warnings.warn(text, CoverageWarning, stacklevel=caller_stacklevel())
        return released


@prepare.register
def prepare_counts(request: CountsRequest, n: int | None = None, payer: Payer = NO_PAYER) -> CountsRequest:
    """Prepare a threshold from published counts, which has no cost: their maker has spent it."""
    if payer != NO_PAYER:
        raise InputError("ledger", "must be left out: the maker of the counts has spent their privacy loss")
    return request


@takes_alpha
def calibrate_counts(
    counts: PublishedCounts,
    alpha: Level,
    *,
    delta: Level | None = None,
    n_min: int | None = None,
    about: Mapping[str, str] | None = None,
    fingerprint: ModelFingerprint | None = None,
) -> CountsCalibration:
    """Compute a threshold from noisy counts that another engine made, with a coverage guarantee.

    The guarantee holds if every count has independent noise of exactly the stated law. The step draws no noise and has
    no privacy cost, so any number of levels can be computed from the same counts.

    Parameters
    ----------
    counts
        The noisy counts, their candidates, and the law of their noise.
    alpha
        Miscoverage level in (0, 1).
    delta
        For a training-conditional guarantee with probability 1 - delta over the records and the noise; needs a public
        number of records.
    n_min
        Public lower bound on a secret number of records.
    about, fingerprint
        As in `calibrate`.

    Returns
    -------
    CountsCalibration
        A `Calibration`, for sets, intervals and files like any other.

    Warns
    -----
    CoverageWarning
        If the threshold is +inf or nearly so, or the counts look clipped at 0.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or the counts were not made as stated, as far as they show it.

    Notes
    -----
    Theorems E1 and E2 of docs/theory-published-counts.md.

    Examples
    --------
    >>> import numpy as np
    >>> from confide import Candidates, Noise, PublishedCounts
    >>> rng = np.random.default_rng(0)  # another engine: two aggregators, each of which adds noise
    >>> noise = sum(rng.geometric(1 - np.exp(-0.5), (2, 128)) - rng.geometric(1 - np.exp(-0.5), (2, 128)))
    >>> noisy = rng.multinomial(10_000, np.full(128, 1 / 128)) + noise
    >>> counts = PublishedCounts(noisy, Candidates.unit(128), Noise.discrete_laplace(2.0, copies=2), 10_000, "lac")
    >>> released = calibrate_counts(counts, alpha=0.1)
    >>> round(released.threshold, 3), released.coverage, released.privacy.epsilon
    (0.913, 0.9, 1.0)
    """
    if not isinstance(counts, PublishedCounts):
        raise InputTypeError("counts", "must be of type PublishedCounts", got=type(counts).__name__)
    if counts.n is not None and n_min is not None:
        raise InputError("n_min", "must be left out: the number of records is public")
    request = CountsRequest(
        counts,
        exact_level("alpha", alpha),
        None if delta is None else float(exact_level("delta", delta)),
        1 if n_min is None else positive_integer("n_min", n_min),
        Metadata.stated(counts.classes, about, fingerprint=fingerprint),
    )
    released: CountsCalibration = release(GivenCounts({None: counts}), request)
    return released
