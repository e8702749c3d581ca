"""The methods that are compared: name, what is claimed, and how each is set up for n records."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

import confide
from confide.candidates import Candidates, Spread
from confide.core import Request, histogram_size
from confide.core.design import Design, design_at
from confide.mechanisms import pps, pps_laplace


@dataclass(frozen=True)
class Method:
    """A column of the tables.

    Parameters
    ----------
    name
        As `calibrate` calls it.
    label
        As tables and figures call it.
    neighbors
        Neighbouring relation under which epsilon holds.
    claims
        Whether the method claims coverage at all.
    own_bins
        The rule by which the method chooses its number of candidates; None if it takes what it is given.
    """

    name: str
    label: str
    neighbors: str
    claims: bool
    own_bins: Literal["version 1", "version 3", "ours"] | None = None

    def mechanism(self, n: int, alpha: Fraction, epsilon: float, m: int) -> Any:
        """The mechanism for n records and m candidates; None where it answers +inf whatever the data are."""
        return self.design(n, alpha, epsilon, m).mechanism

    def design(self, n: int, alpha: Fraction, epsilon: float, m: int) -> Design:
        """The design for n records and m candidates; a noisy number of records is n."""
        request = Request(
            alpha=alpha,
            epsilon=None if self.name == "none" else epsilon,
            candidates=Candidates.unit(m),
            neighbors=self.neighbors,
            mechanism=self.name,
        )
        return design_at(request.terms[None], n)

    def bins(self, n: int, alpha: Fraction, epsilon: float, usual: int) -> int:
        """Its number of candidates: by the rule of its own if it has one, else `usual`."""
        if self.own_bins == "version 1":
            return pps_laplace.optimal_bins(n, alpha, epsilon)
        if self.own_bins == "ours":
            scale = (2 if self.neighbors == "replace_one" else 1) / epsilon
            return histogram_size(Spread("probability"), n, (1 - alpha,), scale)
        if self.own_bins == "version 3":
            return _version_3_bins(n, alpha, epsilon)
        return usual

    def edges(self, m: int) -> confide.Candidates:
        """Its m candidates for uniform scores: e_j = j/m where Algorithm 5 of version 3, which counts on them, chose m."""
        return confide.Candidates.published(m) if self.own_bins == "version 3" else confide.Candidates.unit(m)


OURS = Method("slopes", "slopes (ours)", "replace_one", True)
OURS_SECRET = Method("slopes", "slopes, n secret (ours)", "add_remove", True)
PPS = Method("pps", "pps", "replace_one", True)
PPS_OWN_BINS = Method("pps", "pps, bins by Algorithm 5", "replace_one", True, "version 3")
PPS_LAPLACE = Method("pps-laplace", "pps-laplace", "replace_one", True, "version 1")
NOISY = Method("noisy-histogram", "noisy-histogram (ours)", "replace_one", True, "ours")
OPENDP = Method("opendp-quantile", "opendp-quantile (no claim)", "add_remove", False)
NONE = Method("none", "none (not private)", "replace_one", True)

PRIVATE = (OURS, OURS_SECRET, NOISY, PPS, PPS_OWN_BINS, PPS_LAPLACE, OPENDP)
PUBLISHED = (PPS, PPS_OWN_BINS, PPS_LAPLACE)


@lru_cache(maxsize=64)
def _version_3_bins(n: int, alpha: Fraction, epsilon: float) -> int:
    return pps.optimal_bins(n, alpha, epsilon, np.random.default_rng(0))
