"""Draws from OpenDP's secure samplers: an index from utilities, and noise on counts.

draws.py     the draws of releases, in one place
selector.py  OpenDP's exponential mechanism, its exact law and its exact zCDP; OpenDP's discrete Laplace noise
padding.py   constant time for a release
"""

from confide.selection.draws import noisy_counts, noisy_number, select, uniforms
from confide.selection.selector import (
    check_sampler,
    range_of_zcdp,
    selection_law,
    with_contrib,
    zcdp_of_range,
)
