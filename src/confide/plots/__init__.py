"""Draw sets, intervals, plans, releases and watches with matplotlib, one picture per call.

records.py   plot_coverage: coverage by class or by group
             plot_sizes: sizes of sets
             plot_intervals: intervals along the prediction, and targets outside them
released.py  plot_price: cost of privacy over the number of records and epsilon
             plot_thresholds: thresholds along a chain of releases
             plot_watch: coverage of a watch, look by look

Coverage, sizes and intervals are drawn from records without noise and are not private. The other pictures show public
or released numbers only. Functions return axes; showing and saving them is up to you.
"""

from confide.plots.records import plot_coverage, plot_intervals, plot_sizes
from confide.plots.released import plot_price, plot_thresholds, plot_watch
