"""Property: the counts of every source are the counts of the same scores in an array."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.tables import ScoreColumn, score_histogram
from tests.tables.engines import EMBEDDED

EDGES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=8, unique=True).map(sorted)


@st.composite
def scores_and_candidates(draw):
    """Scores in [0, 1], many of them equal to a candidate or one rounding step from it."""
    edges = draw(EDGES)
    near = st.sampled_from(edges).flatmap(
        lambda edge: st.sampled_from([edge, float(np.nextafter(edge, 0)), float(np.nextafter(edge, 1))])
    )
    scores = draw(st.lists(st.one_of(near, st.floats(0, 1, allow_subnormal=False)), min_size=1, max_size=30))
    return scores, Candidates.of(edges)


@pytest.mark.slow
@pytest.mark.parametrize("source", EMBEDDED)
@settings(max_examples=15)
@given(scores_and_candidates())
def test_counts_of_a_source_are_those_of_an_array(source, case):
    scores, candidates = case
    expected = ScoreHistogram.from_scores(np.array(scores), candidates, "lac")
    with TemporaryDirectory() as folder:
        table = EMBEDDED[source](Path(folder)).table(pa.table({"s": pa.array(scores, pa.float64())}))
        found = score_histogram(table, ScoreColumn("s", "lac"), candidates)
    assert np.array_equal(found.counts, expected.counts)
