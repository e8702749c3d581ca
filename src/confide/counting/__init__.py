"""The only entry point for private data: scores and public candidates in, counts out; nothing else is passed on.

histogram.py  `ScoreHistogram`: counts of scores over public candidates, which can be added; the loop over all scores
cells.py      cells of equal width, which replace a search for every score
"""

from confide.counting.histogram import BinCounter, ScoreHistogram, weight_per_bin
