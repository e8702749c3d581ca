"""Draws from OpenDP's secure samplers: an index from utilities, and noise on counts.

selector.py  the two private selectors, their noise scales and their exact laws; the exact zCDP of the exponential one
noise.py     discrete Laplace and Gaussian noise on integers
padding.py   constant time for a release
"""

from confide.selection.noise import (
    noisy_counts,
)
from confide.selection.selector import (
    SELECTORS,
    Selector,
    check_sampler,
    range_of_zcdp,
    select,
    selection_law,
    unit_nodes,
    with_contrib,
    zcdp_of_range,
)
