"""Figure 4: the number of candidates over four orders of magnitude."""

from benchmarks.small import small
from experiments.methods import NOISY, OURS, PPS, PPS_LAPLACE
from experiments.splits import study
from experiments.sweep import Sweep

N, EPSILON, SPLITS = 1000, 1.0, small(1000, 2)
METHODS = (OURS, PPS, NOISY, PPS_LAPLACE)

PAGE = f"""# Figure 4 at our settings: the number of candidates

Made by `python -m experiments figure4`. alpha = 0.1, n = {N}, epsilon = {EPSILON:g}, LAC scores, logit-spaced candidates,
{SPLITS} random splits. Line: mean over the splits; band: 5 % to 95 %; dotted: no privacy. These are our settings; for the
papers', n = 30,000, epsilon = 5 and uniform bins, see [Figures 4 and 5](private-prediction-sets/figures4-5.md).

The authors' plot files have m from 0.05 to 10 times n epsilon, and the text states that the coverage is nearly constant
over three orders of magnitude of m. For `pps` and `slopes`, too few bins round the threshold up, and more bins cost only
a logarithm. In histograms, the noise of every bin makes each further bin more expensive, until +inf is the only answer.

![Number of candidates](figure4.png)

Entries: mean coverage / mean set size. A coverage of 1 with all classes in every set is the answer +inf.
"""


def run() -> None:
    """The figure and its page."""
    Sweep(
        "figure4",
        "m",
        "number of candidates m",
        small((10, 100, 1000, 10_000, 100_000), (10, 1000)),
        METHODS,
        lambda data, m: study(data, METHODS, N, EPSILON, m, SPLITS, own_bins=False),
        PAGE,
    ).run()
