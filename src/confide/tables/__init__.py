"""Calibration where the data is: scores, counts, sets and intervals computed by a database or a cluster.

A table is an Ibis expression. What is asked of its engine is one GROUP BY over the bins of public candidates; what
comes back are m counts per group and the number of rows that had to be refused. Ibis and the engines' drivers are
imported when a table is connected, not before.
"""

from confide.tables.calibrate import calibrate_table, calibrate_table_groups
from confide.tables.counts import group_histograms, score_histogram
from confide.tables.engine_failures import EngineError
from confide.tables.people import People
from confide.tables.what import Classified, Regressed, Scored

__all__ = [
    "Classified",
    "EngineError",
    "People",
    "Regressed",
    "Scored",
    "calibrate_table",
    "calibrate_table_groups",
    "group_histograms",
    "score_histogram",
]
