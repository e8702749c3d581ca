"""Plans for many silos and for non-IID ones: a quick search, and a guarantee from the distributions of all silos."""

from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from confide import federated
from confide.federated.certificates import certified_k, every_certified_k, order_statistic_coverage, probabilities
from confide.federated.keys import Silo
from confide.federated.many_silos import matched, tails
from confide.federated.private_quantiles import best_private_qq
from confide.federated.reply_laws import RandomRankReply, ReplyTable, random_rank
from confide.mechanisms.slopes import slopes_for
from tests.builders import slow

LEVEL = Fraction(9, 10)
UNEQUAL = np.exp(np.random.default_rng(0).uniform(np.log(20), np.log(2000), 1000)).astype(int).tolist()


def roster(sizes):
    """Return public silos without generating keys, which takes time."""
    keys = ([sha256(f"{use} {i}".encode()).hexdigest() for use in "ab"] for i in range(len(sizes)))
    return [Silo(f"s{i}", *pair, n) for i, (n, pair) in enumerate(zip(sizes, keys, strict=True))]


def replies(sizes, epsilon, rate, candidates=50):
    trial = slopes_for(Fraction(0), Fraction(1), 14, 6, "replace_one", epsilon)
    aimed = (type(trial)(**{**vars(trial), "offset": Fraction(min(n, int(rate * (n + 1)) + 1))}) for n in sizes)
    return [random_rank(n, one, candidates) for n, one in zip(sizes, aimed, strict=True)]


@pytest.mark.parametrize("epsilon", [0.15, 1.0, 8.0])
def test_laws_together_are_the_laws_one_by_one(epsilon):
    """Include ranks that reach 0, vanishing probabilities, and distributions of fractional ranks."""
    laws = [*replies([5, 20, 20, 90, 1000, 100000], epsilon, 0.95), RandomRankReply(9, (2.5, 7.0), (0.5, 0.25), 0.1)]
    t = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 0.99, 60), [1 - 1e-9, 1.0]])
    together = ReplyTable(laws).below(t)
    np.testing.assert_allclose(together, [law.below(t) for law in laws], atol=2e-10)
    assert (np.diff(together, axis=1) >= -1e-12).all()
    np.testing.assert_array_equal(probabilities(laws, t, 3), np.sort(together, axis=0)[-3:])


@pytest.mark.parametrize("delta", [0.05, *slow([None])])
def test_one_sweep_says_what_is_certified_for_every_number_of_silos(delta):
    laws = replies(UNEQUAL[:120], 1.0, 0.93)
    found = every_certified_k(laws, LEVEL, delta)
    assert len(found) == 120
    for honest in (1, 4, 9, 23, 60, 119, 120):
        exact = certified_k(laws, LEVEL, delta, honest)
        assert found[honest - 1] == (None if exact is None else exact[0])
    assert None in found
    assert found[-1] is not None


def test_what_the_sweep_leaves_in_doubt_is_computed_exactly(monkeypatch):
    """Test silos of one rank whose certificate equals the level, which the nodes alone do not decide."""
    laws = [RandomRankReply.fixed(n, n) for n in (9, 19, 39)]
    asked = []
    monkeypatch.setattr(
        "confide.federated.certificates.certified_k", lambda *given: asked.append(given[3]) or certified_k(*given)
    )
    found = every_certified_k(laws, LEVEL, None)
    assert asked == [1]
    assert [None if k is None else k for k in found] == [
        None if (exact := certified_k(laws, LEVEL, None, honest)) is None else exact[0] for honest in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "sizes", [[100] * 1000, pytest.param(UNEQUAL, marks=pytest.mark.slow)], ids=["equal", "unequal"]
)
def test_a_plan_for_a_thousand_silos_is_certified_by_the_laws_of_all(sizes):
    made = federated.plan(roster(sizes), 0.1, 1.0, method="private-qq", score="lac")
    promises = made.promises()
    k, guarantee = made.certify()
    assert (promises[1000].k, promises[1000].infinite, guarantee.coverage) == (k, "never", 0.9)
    assert list(promises) == list(range(1000, 0, -1))
    laws = [made.protocol.reply_law(made.first, i) for i in range(1000)]
    assert order_statistic_coverage(laws, k) >= 0.9  # by all distributions, not by representative ones
    assert order_statistic_coverage(laws, k - 1) < 0.9


@pytest.mark.slow
def test_byzantine_and_absent_silos_are_planned_for_among_many():
    plain = best_private_qq(UNEQUAL[:100], LEVEL, 2.0, 50)
    found = best_private_qq(UNEQUAL[:100], LEVEL, 2.0, 50, honest=85, absent=10, most_k=85)
    laws = [random_rank(n, mechanism, 50) for n, mechanism in zip(UNEQUAL, found.mechanisms, strict=False)]
    assert order_statistic_coverage(laws, found.k, 85) >= 0.9
    assert found.k <= 85
    assert found.expected > plain.expected


def test_the_match_is_exact_for_equal_silos_and_the_law_is_used_for_few():
    chances, silos = np.array([[0.3, 0.8]]), np.array([70])
    np.testing.assert_allclose(matched(chances, silos, 30), tails(chances, silos)(30), atol=1e-12)
    unlike, few = np.array([[0.1, 0.3], [0.9, 0.8], [0.5, 0.5]]), np.array([2, 1, 3])
    one = probabilities([RandomRankReply(1, (1,), (1.0,))], np.array([0.5]))
    assert one[0, 0] == 0.5
    each = np.repeat(unlike, few, axis=0)
    for k in (1, 3, 6):
        outcomes = np.stack(np.meshgrid(*[[0, 1]] * 6, indexing="ij"), -1).reshape(-1, 6)
        ways = np.prod(np.where(outcomes[:, :, None] == 1, each, 1 - each), axis=1)
        np.testing.assert_allclose(tails(unlike, few)(k), ways[outcomes.sum(axis=1) >= k].sum(axis=0), atol=1e-12)
    worst = tails(unlike, few, 3)(2)  # the three largest at each node: 0.9 0.5 0.5 and 0.8 0.5 0.5
    np.testing.assert_allclose(worst, [0.9 * 0.75 + 0.1 * 0.25, 0.8 * 0.75 + 0.2 * 0.25], atol=1e-12)
