"""Exact statements about counts with discrete Laplace noise, computed from the noisy counts alone.

noise.py     the law of the noise and of weighted sums of it, its moment generating function; counts with noise, from a
             secure sampler; upper bounds on the tail of covered records plus noise
interval.py  finite-sample intervals for a coverage, noise included
"""

from confide.noisy_counts.interval import coverage_interval, coverage_share, one_count_interval, simultaneous
from confide.noisy_counts.noise import draw_counts, log_mgf, noise_beyond, noise_law, noise_variance
