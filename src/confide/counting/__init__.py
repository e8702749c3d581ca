"""The one door for private data: in come scores and public candidates, out go counts, and nothing else goes further.

histogram.py  `ScoreHistogram`: counts of scores over public candidates, which add; the loop that sees every score
cells.py      cells of equal width, so that no score has to be searched for
"""

from confide.counting.histogram import BinCounter, ScoreHistogram, weight_per_bin
