"""Thresholds from noisy counts that another engine made (docs/theory-published-counts.md)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

from confide.core.design import design_at
from confide.core.fingerprint import ModelFingerprint
from confide.core.published_counts import PublishedCounts
from confide.core.release import Release
from confide.core.remarks import warn_about, warn_of_choices
from confide.core.request import Request
from confide.core.steps import assembled
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.support import Level, caller_stacklevel, library_versions, log_event, takes_alpha


@takes_alpha
def calibrate_counts(
    counts: PublishedCounts,
    alpha: Level,
    *,
    about: Mapping[str, str] | None = None,
    fingerprint: ModelFingerprint | None = None,
) -> Release:
    """Compute a threshold from noisy counts that another engine made, with a coverage guarantee.

    The guarantee holds if every count has independent noise of exactly the stated law. The step draws no noise and has
    no privacy cost, so any number of levels can be computed from the same counts.

    Parameters
    ----------
    counts
        The noisy counts, their candidates, and the law of their noise.
    alpha
        Miscoverage level in (0, 1).
    about, fingerprint
        As in `calibrate`.

    Returns
    -------
    Release
        For sets, intervals and files like any other. Its `privacy` is what the maker of the counts states, and its
        guarantee holds if the noise has the stated law.

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
    Theorems W3 and W3b of docs/theory-one-number.md; E1 and E2 of docs/theory-published-counts.md.

    Examples
    --------
    >>> import numpy as np
    >>> from confide import Candidates, Noise, PublishedCounts
    >>> rng = np.random.default_rng(0)  # another engine: two aggregators, each of which adds noise
    >>> noise = sum(rng.geometric(1 - np.exp(-0.5), (2, 128)) - rng.geometric(1 - np.exp(-0.5), (2, 128)))
    >>> noisy = rng.multinomial(10_000, np.full(128, 1 / 128)) + noise
    >>> counts = PublishedCounts(noisy, Candidates.unit(128), Noise.discrete_laplace(2.0, copies=2), 10_000, "lac")
    >>> released = calibrate_counts(counts, alpha=0.1)
    >>> round(released.threshold, 3), round(released.coverage, 4), released.privacy.epsilon
    (0.906, 0.9001, 1.0)
    """
    if not isinstance(counts, PublishedCounts):
        raise InputTypeError("counts", "must be of type PublishedCounts", got=type(counts).__name__)
    if counts.n is None and counts.n_noisy is None:
        remedy = "The sum of noisy counts does not do: its noise is that of the counts"
        raise InputError(
            "n_noisy", "must be given if the number of records is secret, with its own noise", remedy=remedy
        )

    # The request: what the counts state, and the level.
    request = Request(
        alpha=alpha,
        epsilon=counts.epsilon,
        noise=counts.noise,
        neighbors="add_remove" if counts.n is None else "replace_one",
        n_noise=None if counts.n_noise is None else counts.n_noise.scale,
        candidates=counts.candidates,
        score=counts.score,
        classes=counts.classes,
        about=about,
        fingerprint=fingerprint,
    )

    # The counts, as far as they show how they were made; then the target that the law of their noise allows.
    note = counts.check()
    terms = request.terms[None]
    number = counts.n_noisy if counts.n is None else counts.n
    assert number is not None
    design = design_at(terms, number)
    value = math.inf
    if design.mechanism is not None:
        value = float(counts.candidates.values[design.mechanism.choose(counts.counts)])
    released = assembled(request, {None: {None: design.threshold(value)}}, library_versions())

    # What is reported and warned of.
    log_event("core", "released from published counts", score=counts.score, alpha=released.alpha)
    if note:
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
    warn_of_choices(released)
    warn_about(released)
    return released
