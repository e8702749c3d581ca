"""Sets, intervals, plans, releases and watches come in; matplotlib axes leave, one picture per call.

coverage.py    plot_coverage: who is covered how often, by class or by group
sizes.py       plot_sizes: how large sets are
intervals.py   plot_intervals: intervals along the prediction, and who is outside
price.py       plot_price: what privacy costs, over the number of records and epsilon
thresholds.py  plot_thresholds: the course of thresholds along a chain of releases
looks.py       plot_watch: the course of coverage, look by look

Coverage, sizes and intervals are drawn from records, without noise, and are not private; the other pictures show public
or released numbers alone. Nothing is shown or saved: that is left to whoever asked for the axes.
"""

from confide.plots.coverage import plot_coverage
from confide.plots.intervals import plot_intervals
from confide.plots.looks import plot_watch
from confide.plots.price import plot_price
from confide.plots.sizes import plot_sizes
from confide.plots.thresholds import plot_thresholds

__all__ = ["plot_coverage", "plot_intervals", "plot_price", "plot_sizes", "plot_thresholds", "plot_watch"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
