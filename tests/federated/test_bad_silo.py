"""How far one silo with distant scores moves the threshold of private-qq, for every planned rank k.

The threshold is the k-th smallest of m replies. With any reply of one silo it stays between the (k-1)-th and the k-th
smallest reply of the m - 1 others. For k < m the threshold lies beyond all honest scores only if m - k honest replies
do. The probability of this event is a very small binomial tail. For k = m the threshold is the largest reply, so that
one silo determines it. A plan states its k.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from tests.exact import mechanism_law
from tests.federated.helpers import Federation, kth_reply

SILOS, SIZE, LAST = 5, 210, 2
CANDIDATES = Candidates.of([1, 2, 3, 1e6])
"""Honest scores are 1, 2 or 3, the last at position `LAST`; an empty candidate range follows."""
HONEST = np.repeat([1.0, 2.0, 3.0], SIZE // 3)
FAR = {"beyond a desert": 1e6, "larger than every candidate": 1e300, "infinite": math.inf}


@pytest.fixture
def federation(tmp_path, request):
    return Federation(tmp_path, [np.full(SIZE, request.param), *[HONEST] * (SILOS - 1)])


def replies(plan, scores):
    """Return the exact distributions of the silos' replies, shape (silos, candidates)."""
    counts = [tuple(np.bincount(np.searchsorted(CANDIDATES.edges, s), minlength=CANDIDATES.size)) for s in scores]
    return np.array([mechanism_law(plan.protocol.mechanism(plan.first, i), h) for i, h in enumerate(counts)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:replies of .silo 0.:confide.CoverageWarning")  # for distant replies
@pytest.mark.parametrize("federation", FAR.values(), ids=FAR, indirect=True)
def test_a_far_silo_does_not_carry_the_answer_away(federation):
    signed = federation.plan(0.2, 2.0, candidates=CANDIDATES)
    plan = federated.read_plan(signed)
    bad, *honest = replies(plan, federation.scores)
    assert bad[LAST + 1 :].sum() > 1 - 1e-9  # its reply is far from the others
    others, away = SILOS - 1, honest[0][LAST + 1 :].sum()
    chances = dict.fromkeys(range(1, SILOS + 1), 0.0)
    for vector in itertools.product(range(CANDIDATES.size), repeat=others):
        chance = math.prod(law[j] for law, j in zip(honest, vector, strict=True))
        low_to_high = sorted(vector)
        for k, output in itertools.product(chances, range(CANDIDATES.size)):
            answer = kth_reply([output, *vector], k, CANDIDATES.size)
            assert answer >= (low_to_high[k - 2] if k > 1 else 0)
            assert answer <= (low_to_high[k - 1] if k < SILOS else CANDIDATES.size - 1)
            chances[k] += chance * bad[output] * (answer > LAST)
    for k in range(1, SILOS):
        assert chances[k] == pytest.approx(stats.binom.sf(SILOS - k - 1, others, away), rel=1e-6, abs=1e-15)
    assert chances[SILOS] > 1 - 1e-9  # the largest reply is the distant one
    k, _ = plan.certify()
    assert k < SILOS
    assert chances[k] < 1e-9
    released = federated.aggregate(signed, federation.answers(signed))
    assert released[None].k == k
    assert released.threshold <= HONEST.max()
