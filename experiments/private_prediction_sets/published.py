"""The authors' values: from their texts, and from the vector graphics in their public repository.

Repository: github.com/aangelopoulos/private_prediction_sets (MIT license); version 3's pictures are those of its last
commit (89a25ca, 2024-03-03), version 1's those of fd650ba (2021-02-11). Figure 2 is drawn as lines, whose coordinates
give the levels to 1e-9 (figure2.csv); means and shares of Figures 3 to 6 are read off histograms, to about .001.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

READING_ERROR = 0.001
"""Error of coverages read off the histograms of Figures 3 to 6."""

LINE_ERROR = 1e-9
"""Error of levels read off the lines of Figure 2."""

ACCURACY = {"version 3": {"plain": 0.73, "private": 0.67}, "version 1": {"plain": 0.83, "private": 0.49}}
"""Section 4.1 of either text."""

FIGURE_3_SIZES = {"plain": {"none": 1.22, "pps": 1.24}, "private": {"none": 4.19, "pps": 4.21}}
"""Read off the histograms; they fit the accuracies of version 1."""

FIGURE_4 = {"coverage": (0.9005, 0.9009), "size": 1.77}
"""Smallest and largest mean over the five numbers of bins; the mean size is the same for all."""

FIGURE_5 = {0.5: (0.9040, 1.82), 1.0: (0.9021, 1.79), 5.0: (0.9007, 1.77), 10.0: (0.9002, 1.77)}
"""Mean coverage and mean size per epsilon."""

FIGURE_6 = {"median": 0.904, "mean": 0.906, "deviation": 0.016, "sets of one": 0.53, "sets of two": 0.47}
"""The median is in the text of version 3."""


@dataclass(frozen=True)
class Level:
    """A point of Figure 2: the adjusted level at (n, epsilon) in a version, along `n` or along `epsilon`."""

    version: int
    along: str
    n: int
    epsilon: float
    level: float


def figure_2() -> list[Level]:
    """All points of Figure 2 of versions 1 and 3; version 1's curves are left out where they exceed 1."""
    with (Path(__file__).parent / "figure2.csv").open(encoding="utf-8") as file:
        return [
            Level(int(row["version"]), row["along"], int(row["n"]), float(row["epsilon"]), float(row["level"]))
            for row in csv.DictReader(file)
        ]
