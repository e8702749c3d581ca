"""In come counts over public candidates, out goes the index of one: each file one mechanism with its privacy map.

interface.py        what every mechanism says about itself
slopes.py           the mechanism of this project
pps.py              Private Prediction Sets, the exponential mechanism, for a public number of records
pps_removal.py      the same for a secret one, under the paper's own relation
pps_laplace.py      Private Prediction Sets, version 1: a Laplace histogram
laplace_walk.py     how far its noise goes, exactly
noisy_histogram.py  the same release, calibrated by the random-rank lemma
opendp_quantile.py  OpenDP's private quantile
pcoqs.py            P-COQS, a noisy binary search: zero-concentrated privacy, no pure epsilon
split_conformal.py  no privacy: the baseline
noisy_labels.py     thresholds from labels that were randomised before anybody saw them, and their privacy
privacy.py          `PrivacyStatement`: what a release costs, from the mechanism's own map
composition.py      what several releases cost together
certify.py          `Guarantee` of a mechanism, from public numbers alone
fields.py           mechanisms as JSON objects

Methods of others carry the names that they were published under, so that their price can be compared (docs/methods.md).
"""

from confide.mechanisms.certify import certify
from confide.mechanisms.composition import in_sequence, shares_of, side_by_side
from confide.mechanisms.fields import MECHANISM, mechanism_fields
from confide.mechanisms.interface import MECHANISMS, Mechanism, MechanismName
from confide.mechanisms.laplace_walk import walk_quantiles, walk_stays_below
from confide.mechanisms.noisy_histogram import NoisyHistogram, noisy_histogram_for
from confide.mechanisms.noisy_labels import LabelPrivacy, NoisyLabels, label_rows, noisy_labels_for
from confide.mechanisms.opendp_quantile import opendp_quantile_for, quantile_scores
from confide.mechanisms.pcoqs import NoisySearch, pcoqs_for, published_candidates, published_pcoqs_for
from confide.mechanisms.pps import (
    PrivatePredictionSets,
    adjusted_level,
    gamma_roots,
    optimal_bins,
    optimal_gamma,
    pps_for,
)
from confide.mechanisms.pps_laplace import LaplaceHistogram, laplace_level, noise_closed_form, pps_laplace_for
from confide.mechanisms.pps_removal import PpsOfSecretSize, pps_of_secret_size
from confide.mechanisms.privacy import (
    NEIGHBORS,
    Neighbors,
    PrivacyStatement,
    practically_none,
    privacy_statement,
)
from confide.mechanisms.slopes import UNIT, Slopes, fade_for, slopes_for
from confide.mechanisms.split_conformal import SplitConformal, split_conformal_for

__all__ = [
    "MECHANISM", "MECHANISMS", "NEIGHBORS", "UNIT",
    "LabelPrivacy", "LaplaceHistogram", "Mechanism", "MechanismName", "Neighbors",
    "NoisyHistogram", "NoisyLabels", "NoisySearch", "PpsOfSecretSize", "PrivacyStatement", "PrivatePredictionSets",
    "Slopes", "SplitConformal", "adjusted_level", "certify", "fade_for", "gamma_roots", "in_sequence", "label_rows",
    "laplace_level", "mechanism_fields", "noise_closed_form", "noisy_histogram_for", "noisy_labels_for",
    "opendp_quantile_for", "optimal_bins", "optimal_gamma", "pcoqs_for", "pps_for", "pps_laplace_for",
    "pps_of_secret_size", "practically_none", "privacy_statement", "published_candidates", "published_pcoqs_for",
    "quantile_scores", "shares_of", "side_by_side", "slopes_for", "split_conformal_for",
    "walk_quantiles", "walk_stays_below",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
