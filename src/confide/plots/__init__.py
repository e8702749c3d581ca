"""Draw sets, plans, releases and watches with matplotlib, one picture per call; `intervals.plot` draws intervals.

Coverage, sizes and intervals are drawn from records without noise and are not private. The other pictures show public
or released numbers only. Functions return axes; showing and saving them is up to you.
"""

from confide.plots.coverage import plot_coverage
from confide.plots.price import plot_price
from confide.plots.sizes import plot_sizes
from confide.plots.thresholds import plot_thresholds
from confide.plots.watch import plot_watch

__all__ = ["plot_coverage", "plot_price", "plot_sizes", "plot_thresholds", "plot_watch"]


def __dir__() -> list[str]:
    return sorted(__all__)
