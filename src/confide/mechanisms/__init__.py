"""Mechanisms: each selects the index of one public candidate from counts, and states its privacy loss.

interface.py states what each has, and slopes.py the mechanism of this project. The others are published methods, under
their published names, so that their prices can be compared (docs/methods.md).
"""

from confide.mechanisms.interface import MECHANISMS, Mechanism, MechanismName, certify, mechanism_facts
from confide.mechanisms.noisy_histogram import (
    NoisyHistogram,
    PublishedHistogram,
    noisy_histogram_for,
    published_histogram_for,
)
from confide.mechanisms.noisy_size import (
    OF_DESIGN,
    OF_TARGET,
    NoisySize,
    SizeShare,
    design_for,
    draw_size,
    size_scale,
    size_zcdp,
)
from confide.mechanisms.opendp_quantile import opendp_quantile_for
from confide.mechanisms.pps import (
    PpsOfSecretSize,
    PrivatePredictionSets,
    adjusted_level,
    gamma_roots,
    optimal_bins,
    optimal_gamma,
    pps_for,
    pps_of_secret_size,
)
from confide.mechanisms.pps_laplace import (
    LaplaceHistogram,
    laplace_level,
    noise_closed_form,
    pps_laplace_for,
    walk_quantiles,
    walk_stays_below,
)
from confide.mechanisms.privacy import (
    NEIGHBORS,
    Neighbors,
    PrivacyStatement,
    loss_facts,
    losses,
    parallel_composition,
    privacy_statement,
    sequential_composition,
    split_epsilon,
    weak_privacy_text,
    with_choice,
)
from confide.mechanisms.reading import decoded, read_mechanism
from confide.mechanisms.score_choice import Chosen, ScoreChoice
from confide.mechanisms.slopes import UNIT, Slopes, free_fade, slopes_for
from confide.mechanisms.split_conformal import SplitConformal, split_conformal_for
from confide.mechanisms.stated_noise import Noise, StatedPrivacy
