"""Figure 5: the privacy budget from 0.1 to 10."""

from benchmarks.small import small
from experiments.methods import NOISY, OPENDP, OURS, PPS, PPS_LAPLACE
from experiments.splits import study
from experiments.sweep import Sweep

N, BINS, SPLITS = small(2000, 1000), 1000, small(1000, 2)
METHODS = (OURS, PPS, NOISY, PPS_LAPLACE, OPENDP)

PAGE = f"""# Figure 5 at our settings: the privacy budget

Made by `python -m experiments figure5`. alpha = 0.1, n = {N}, LAC scores, logit-spaced candidates ({BINS}; noisy
histograms near (n epsilon)^(2/3)), {SPLITS} random splits. Line: mean over the splits; band: 5 % to 95 %; dotted: no
privacy. `opendp-quantile` claims no coverage. epsilon is add/remove for it and replace-one for the others. These are our
settings; for the papers', see [Figures 4 and 5](private-prediction-sets/figures4-5.md).

![Privacy budget](figure5.png)

Entries: mean coverage / mean set size. A coverage of 1 with all classes in every set is the answer +inf.
"""


def run() -> None:
    """The figure and its page."""
    Sweep(
        "figure5",
        "epsilon",
        "privacy loss epsilon",
        (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        METHODS,
        lambda data, epsilon: study(data, METHODS, N, epsilon, BINS, SPLITS),
        PAGE,
    ).run()
