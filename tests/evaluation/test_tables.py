"""Printed tables whose columns fit."""

import numpy as np

import confide
from confide.sets import PredictionSets

LONG = "cancer-associated stroma, as seen on slides of the colon and rectum"


def test_columns_are_as_wide_as_their_names_and_empty_parts_are_left_out():
    sets = PredictionSets(np.array([[True, False, False]] * 3), (LONG, "b", "nobody"))
    lines = str(confide.class_coverage(sets, [LONG, LONG, "b"])).splitlines()
    assert [line.split()[-1] for line in lines] == ["size", "1.00", "1.00"]
    assert len({len(line) for line in lines}) == 1
    assert (
        len({line.index(end) + len(end) for line, end in zip(lines, ("coverage", "1.000", "0.000"), strict=True)}) == 1
    )
    by_size = str(confide.size_coverage(sets, [LONG, LONG, "b"]))
    assert len(by_size.splitlines()) == 2
    assert "nan" not in by_size
