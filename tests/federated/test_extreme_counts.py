"""Silos without records, one silo with all of them, and counts that are too large for a message: no wrong threshold."""

import numpy as np
import pytest

from confide import Candidates, CoverageWarning, ScoreHistogram, federated
from confide.errors import InputError
from tests.federated.helpers import Federation
from tests.planted_values import assert_error_is_private


def test_a_group_that_no_silo_has_is_named(tmp_path):
    """Both groups are answered alike; the one without records has +inf, and its name is in the warning."""
    federation = Federation.uniform(tmp_path, 800, 800, 800, secret=True)
    options = {"candidates": Candidates.unit(51), "method": "private-qq"}
    plan = federated.plan(federation.silos, 0.1, 4.0, by="group", names=["all", "none"], **options).sign(
        federation.coordinator
    )
    answers = [federation.answer(i, plan, groups=["all"] * 800) for i in range(3)]
    with pytest.warns(CoverageWarning, match="the threshold of group none is \\+inf"):
        released = federated.aggregate(plan, answers)
    assert released.parts["all"].threshold < np.inf


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
@pytest.mark.parametrize("silos", [3, 60])
def test_counts_beyond_the_stated_size_are_rejected_and_never_wrapped(tmp_path, method, silos):
    """Counts of 3 billion a bin exceed 2^31 and a public size; their sum over all bins exceeds 2^32."""
    federation = Federation.uniform(tmp_path, *[50] * silos)
    plan = federation.plan(method=method, candidates=Candidates.unit(21))
    large = ScoreHistogram(Candidates.unit(21), np.full(21, 3_000_000_000))
    with pytest.raises(InputError) as caught:
        federated.answer(plan, large, federation.keys[0], federation.policy, federation.ledgers[0])
    assert_error_is_private(caught.value)
    assert federation.answer(0, plan)  # nothing was charged, and the plan can still be answered


@pytest.mark.slow(unless="secure-sum")
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_counts_of_billions_are_summed_exactly(tmp_path, method):
    """Three silos of 3 billion records each, all in one bin but for 9 in 100: the threshold is the end of that bin."""
    candidates, size = Candidates.unit(21), 3_000_000_000
    federation = Federation(tmp_path, [[0.5]] * 3)
    federation.silos = [keys.public(size) for keys in federation.keys]
    plan = federation.plan(method=method, candidates=candidates)
    counts = np.zeros(21, np.int64)
    counts[10], counts[15] = size // 100 * 91, size // 100 * 9
    counted = ScoreHistogram(candidates, counts)
    federation.scores = [counted] * 3
    assert federated.aggregate(plan, federation.answers(plan)).threshold == candidates.edges[10]
