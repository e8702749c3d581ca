"""Theorems F5 and F6: noise shares, masks, and the certificate of the noisy histogram."""

import itertools

import numpy as np
import pytest
from scipy import stats

from confide.federated.keys import SiloKeys
from confide.federated.masking import mask, open_sum
from confide.federated.noise_shares import noise_law, noise_scale, noise_share
from confide.federated.noise_walk import walk_maximum
from confide.federated.secure_sum import (
    choose_summed,
    modulus_bits,
    summed_coverage,
    summed_failure,
    summed_target,
    total_deficit,
)
from confide.guarantee.noise_walk import maximum
from tests.exact import histograms, replaced


def chi_square(draws, law):
    half = len(law) // 2
    observed = np.bincount(np.clip(draws + half, 0, len(law) - 1), minlength=len(law))
    expected = law * len(draws)
    keep = expected >= 5
    rest = len(draws) - expected[keep].sum()
    o, e = np.append(observed[keep], observed[~keep].sum()), np.append(expected[keep], max(rest, 1e-9))
    good = e >= 1
    statistic = ((o[good] - e[good]) ** 2 / e[good]).sum()
    return stats.chi2.sf(statistic, good.sum() - 1)


@pytest.mark.parametrize(("scale", "honest"), [(2.0, 1), (2.0, 4), (0.4, 3), (7.3, 5)])
def test_honest_shares_add_up_to_discrete_laplace(scale, honest):
    total = sum(noise_share(4000, scale, honest) for _ in range(honest))
    p = np.exp(-1 / scale)
    half = 60 * int(np.ceil(scale))
    x = np.arange(-half, half + 1)
    assert chi_square(total, (1 - p) / (1 + p) * p ** np.abs(x)) > 1e-6


def test_all_shares_have_the_stated_law():
    total = sum(noise_share(6000, 1.5, 2) for _ in range(5))
    assert chi_square(total, noise_law(1.5, 2.5)) > 1e-6


def test_noise_law_of_honest_shares_is_discrete_laplace():
    for scale in (0.3, 1.0, 12.0):
        law = noise_law(scale, 1.0)
        x = np.arange(len(law)) - len(law) // 2
        p = np.exp(-1 / scale)
        np.testing.assert_allclose(law, (1 - p) / (1 + p) * p ** np.abs(x), atol=1e-15)
        assert law.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("honest", [1, 2, 3])
def test_loss_of_the_opened_sum(honest):
    """Exact enumeration: the coalition subtracts its own shares, what is left hides one record to epsilon."""
    epsilon = 0.8
    law = noise_law(noise_scale(epsilon, 2), 1.0)  # the shares of `honest` silos, whoever colludes
    half = len(law) // 2
    log = np.log(law[half - 25 : half + 26])
    worst = 0.0
    for h in histograms(3, 3):
        for g in replaced(h):
            gains = [
                max(abs(log[25 + o - a] - log[25 + o - b]) for o in range(-12, 13)) for a, b in zip(h, g, strict=True)
            ]
            worst = max(worst, sum(gains))  # counts carry independent noise: losses of coordinates add
    assert 0.999 * epsilon <= worst <= epsilon + 1e-9


def test_more_shares_only_hide_more():
    """The law with extra shares is that of discrete Laplace noise convolved with something independent."""
    base, more = noise_law(2.0, 1.0), noise_law(2.0, 1.6)
    ratio = np.abs(np.diff(np.log(more[len(more) // 2 - 40 : len(more) // 2 + 41]))).max()
    assert ratio <= np.abs(np.diff(np.log(base[len(base) // 2 - 40 : len(base) // 2 + 41]))).max() + 1e-9


def enumerated_maximum(step, steps):
    half = len(step) // 2
    law = {}
    for walk in itertools.product(range(-half, half + 1), repeat=steps):
        top = max(0, *itertools.accumulate(walk)) if steps else 0
        law[top] = law.get(top, 0) + np.prod([step[half + x] for x in walk])
    return np.array([law.get(i, 0.0) for i in range(max(law) + 1)])


def test_walk_maximum_against_all_walks():
    step = np.array([0.05, 0.2, 0.5, 0.2, 0.05])
    for steps in range(1, 6):
        np.testing.assert_allclose(walk_maximum(step, steps), enumerated_maximum(step, steps), atol=1e-12)


def test_walk_maximum_agrees_with_the_one_for_discrete_laplace_steps():
    other = maximum(2.0, 40).law
    ours = walk_maximum(noise_law(2.0, 1.0), 40)
    np.testing.assert_allclose(ours[:200], other[:200], atol=1e-12)


def test_certificate_against_every_data_set():
    """Exact coverage of every multiset of 6 points in 3 bins, over every noise vector, is at least the certificate."""
    n, m, target, scale = 5, 3, 4, 0.5
    law = noise_law(scale, 1.5)
    half = len(law) // 2
    law = law[half - 6 : half + 7]
    deficit = walk_maximum(law, m - 1)
    promised = float(summed_coverage(n, target, deficit, 1))
    chosen = {}
    for h in histograms(n, m):
        p = np.zeros(m)
        for noise in itertools.product(range(-6, 7), repeat=m - 1):  # the first bin's noise plays no part
            j = choose_summed(np.array(h) + np.array([0, *noise]), n, target)
            p[j] += np.prod([law[6 + x] for x in noise])
        chosen[h] = p
    worst = 1.0
    for h in histograms(n + 1, m):
        covered = sum(c * chosen[tuple(v - (i == b) for i, v in enumerate(h))][b:].sum() for b, c in enumerate(h) if c)
        worst = min(worst, covered / (n + 1))
    assert promised <= worst + 1e-9
    assert promised > 0.4


def test_mixture_of_unlike_silos_is_covered():
    """Silos that share no scores at all: the new record comes from silo j with probability (n_j+1)/(n+m)."""
    rng = np.random.default_rng(3)
    sizes = np.array([40, 60, 100])
    deficit = total_deficit(2.0, 3, 2, 30)
    target = summed_target(200, 0.9, None, deficit, 3)
    edges = np.linspace(0.1, 2.95, 29)
    rounds, hits = 4000, 0
    law = noise_law(2.0, 1.5)
    for _ in range(rounds):
        scores = np.concatenate([j + rng.random(n) for j, n in enumerate(sizes)])
        counts = np.diff(np.searchsorted(np.sort(scores), edges, side="right"), prepend=0, append=200)
        noise = rng.choice(np.arange(len(law)) - len(law) // 2, p=law / law.sum(), size=30)
        threshold = np.append(edges, np.inf)[choose_summed(counts + noise, 200, target)]
        j = rng.choice(3, p=(sizes + 1) / (200 + 3))
        hits += j + rng.random() <= threshold
    assert stats.binomtest(hits, rounds, 0.9, "less").pvalue > 1e-6


def test_summed_failure_by_simulation():
    deficit = total_deficit(1.0, 4, 3, 20)
    n, target = 300, summed_target(300, 0.9, 0.05, total_deficit(1.0, 4, 3, 20), 1)
    bound = summed_failure(n, target, deficit, 0.9)
    assert bound <= 0.05
    rng = np.random.default_rng(4)
    N = rng.choice(len(deficit), p=deficit / deficit.sum(), size=20000)
    coverage = rng.beta(np.maximum(target - N, 1), n - np.maximum(target - N, 1) + 1)
    assert stats.binomtest(int((coverage < 0.9).sum()), 20000, bound, "greater").pvalue > 1e-6


@pytest.mark.parametrize("bits", [32, 64])
def test_masks_cancel_and_hide(bits):
    keys = [SiloKeys.generate(f"silo {i}") for i in range(4)]
    roster = [k.public().agreement for k in keys]
    vectors = [np.array([i, -3 * i, 2**20, -(2**20)]) for i in range(4)]
    masked = [
        mask(v, k.agreement, k.public().agreement, roster, b"one", bits) for v, k in zip(vectors, keys, strict=True)
    ]
    np.testing.assert_array_equal(open_sum(masked, bits), np.sum(vectors, axis=0))
    # Without one vector, or in another session, nothing of the sum is left.
    assert not np.array_equal(open_sum(masked[:3], bits), np.sum(vectors[:3], axis=0))
    other = mask(vectors[0], keys[0].agreement, roster[0], roster, b"two", bits)
    assert not np.array_equal(other, masked[0])
    long = mask(np.zeros(40000, dtype=np.int64), keys[0].agreement, roster[0], roster, b"three", bits)
    top = np.bincount(
        (long >> np.uint64(bits - 4)).astype(int) if bits == 64 else (long >> np.uint32(28)).astype(int), minlength=16
    )
    assert stats.chisquare(top).pvalue > 1e-6


def test_modulus_leaves_room():
    assert modulus_bits(10**6, 2.0, 5, 3) == 32
    assert modulus_bits(2**31, 2.0, 5, 3) == 64
    assert modulus_bits(10**6, 1e7, 5, 3) == 64
