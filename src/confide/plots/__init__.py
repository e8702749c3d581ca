"""Sets, intervals, plans, releases and watches come in; matplotlib axes leave, one picture per call.

records.py   plot_coverage: who is covered how often, by class or by group
             plot_sizes: how large sets are
             plot_intervals: intervals along the prediction, and who is outside
released.py  plot_price: what privacy costs, over the number of records and epsilon
             plot_thresholds: the course of thresholds along a chain of releases
             plot_watch: the course of coverage, look by look

Coverage, sizes and intervals are drawn from records, without noise, and are not private; the other pictures show public
or released numbers alone. Nothing is shown or saved: that is left to whoever asked for the axes.
"""

from confide.plots.records import plot_coverage, plot_intervals, plot_sizes
from confide.plots.released import plot_price, plot_thresholds, plot_watch
