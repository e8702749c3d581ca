"""Draws from OpenDP's secure samplers: an index from utilities, and noise on counts.

draws.py    the draws of releases, in one place; the exponential mechanism's exact law
zcdp.py     the exact zCDP of a mechanism with bounded range
padding.py  constant time for a release
"""

from confide.selection.draws import (
    check_sampler,
    noisy_counts,
    noisy_number,
    select,
    selection_law,
    uniforms,
    with_contrib,
)
from confide.selection.zcdp import range_of_zcdp, zcdp_of_range
