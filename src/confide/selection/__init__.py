"""Draws from OpenDP's secure samplers: an index from utilities, and noise on counts.

selector.py  the exponential mechanism, its exact law and its exact zCDP; discrete noise on integers
padding.py   constant time for a release
"""

from confide.selection.selector import (
    check_sampler,
    noisy_counts,
    range_of_zcdp,
    select,
    selection_law,
    with_contrib,
    zcdp_of_range,
)
