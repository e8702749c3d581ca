"""Draws from OpenDP's secure samplers: an index from utilities, and noise on counts.

draws.py    the draws of releases, in one place; the exponential mechanism's exact law and exact zCDP
padding.py  constant time for a release
"""

from confide.selection.draws import (
    check_sampler,
    noisy_counts,
    noisy_number,
    range_of_zcdp,
    select,
    selection_law,
    uniforms,
    with_contrib,
    zcdp_of_range,
)
