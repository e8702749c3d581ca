"""In come counts with discrete Laplace noise, out go exact statements about them: numbers, and no private data.

noise.py     the law of the noise and of weighted sums of it, its moment generating function; counts with noise, from a
             secure sampler; how likely covered records and noise together reach a value, bounded from above
interval.py  intervals for a coverage that hold for finite samples, noise included
"""

from confide.noisy_counts.interval import coverage_interval, coverage_share, one_count_interval, simultaneous
from confide.noisy_counts.noise import draw_counts, log_mgf, noise_law
