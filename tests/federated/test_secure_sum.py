"""Theorems F5, F6 and W1: noise shares, masks, and the certificate of the noisy histogram."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.federated import Refusal
from confide.federated.certificates import (
    certifies,
    conditional_coverage_failure,
    order_statistic_coverage,
    smallest,
)
from confide.federated.keys import SiloKeys
from confide.federated.protocols.secure_sum import (
    modulus_bits,
    total_deficit,
)
from confide.federated.reply_laws import RandomRankReply, SummedReply
from confide.federated.sharing import mask, noise_law, noise_share, open_sum
from confide.guarantee.noise_walk import chosen_by_last_rule, walk_end
from confide.support import scale_for
from tests.builders import slow
from tests.exact import histograms, replaced, walk_maximum
from tests.refused import refused


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


@pytest.mark.parametrize(("scale", "honest"), [(2.0, 1), *slow([(2.0, 4), (0.4, 3), (7.3, 5)])])
def test_honest_shares_add_up_to_discrete_laplace(scale, honest):
    total = sum(noise_share(4000, scale, honest) for _ in range(honest))
    p = np.exp(-1 / scale)
    half = 60 * int(np.ceil(scale))
    x = np.arange(-half, half + 1)
    assert chi_square(total, (1 - p) / (1 + p) * p ** np.abs(x)) > 1e-6


@pytest.mark.slow
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


def share_law(scale, honest, half=60):
    """Return the distribution of one silo's share on -half..half.

    It uses scipy's negative binomial instead of the library's formula.
    """
    one = stats.nbinom.pmf(np.arange(half + 1), 1 / honest, -np.expm1(-1 / scale))
    return np.convolve(one, one[::-1])


@pytest.mark.parametrize(("silos", "planned"), [(2, 0), (3, 1), (4, 1), (5, 2)])
def test_loss_of_the_opened_sum_with_colluding_silos(silos, planned):
    """c colluding silos subtract their counts and shares; the rest hides one record of the others to epsilon (exact).

    This holds for c up to the planned number and no more. The histograms are those of the silos that do not collude.
    """
    epsilon, honest = 0.8, silos - planned
    scale, reach = scale_for(2, epsilon), 12
    for colluding in range(silos):
        law = np.ones(1)
        for _ in range(silos - colluding):
            law = np.convolve(law, share_law(scale, honest))
        log = np.log(law[len(law) // 2 - 2 * reach : len(law) // 2 + 2 * reach + 1])
        worst = 0.0
        for h in histograms(3, 3):
            for g in replaced(h):
                seen = range(-reach, reach + 1)
                gains = [
                    max(abs(log[2 * reach + o - a] - log[2 * reach + o - b]) for o in seen)
                    for a, b in zip(h, g, strict=True)
                ]
                worst = max(worst, sum(gains))  # counts have independent noise: the losses of coordinates add up
        if colluding < planned:
            assert worst <= epsilon + 1e-9
        elif colluding == planned:
            assert worst == pytest.approx(epsilon, rel=1e-6)
        else:
            assert worst > epsilon * 1.01


def test_a_coalition_learns_the_sum_of_the_others_and_nothing_else():
    """Coordinator and silos 2 and 3 remove their masks from the messages of 0 and 1, and see only the sum of both."""
    keys = [SiloKeys.generate(f"silo {i}") for i in range(4)]
    roster = [k.public().agreement for k in keys]
    rng = np.random.default_rng(0)
    values = rng.integers(0, 50, (4, 30000))
    masked = [mask(v, k.agreement, k.public().agreement, roster, b"one", 32) for v, k in zip(values, keys, strict=True)]
    zero = np.zeros(30000, dtype=np.int64)
    left = []
    for i in (0, 1):
        known = sum(
            mask(zero, keys[c].agreement, roster[c], [roster[c], roster[i]], b"one", 32).astype("<u4") for c in (2, 3)
        )
        left.append(masked[i] + known)  # the colluder's stream is the negative of silo i's
    np.testing.assert_array_equal(open_sum(left, 32), values[0] + values[1])
    for vector in left:
        high = np.bincount((vector >> np.uint32(28)).astype(int), minlength=16)
        low = np.bincount((vector & np.uint32(15)).astype(int), minlength=16)
        assert stats.chisquare(high).pvalue > 1e-6
        assert stats.chisquare(low).pvalue > 1e-6


def test_more_shares_only_hide_more():
    """The noise with extra shares is discrete Laplace noise plus independent noise."""
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


def test_shares_are_peaked():
    """Theorem W1 needs noise that is symmetric and does not increase away from 0: so are all shares of m' and more."""
    for scale in (0.3, 2.0, 12.0):
        for parameter in (1.0, 1.01, 1.5, 4.0, 30.0):
            law = noise_law(scale, parameter)
            np.testing.assert_allclose(law, law[::-1], atol=1e-15)
            assert np.diff(law[len(law) // 2 :]).max() < 1e-15
            assert walk_end(law, 50).sum() == pytest.approx(1, abs=1e-11)


def test_certificate_against_every_data_set():
    """Coverage of every multiset of 6 points in 3 bins, over all noise vectors, is at least the certificate (exact)."""
    n, m, target, scale = 5, 3, 4, 0.5
    law = noise_law(scale, 1.5)
    half = len(law) // 2
    law = law[half - 6 : half + 7]
    deficit = walk_end(law, m - 1)
    promised = float(SummedReply(n, target, deficit).coverage)
    chosen = {}
    for h in histograms(n, m):
        p = np.zeros(m)
        for noise in itertools.product(range(-6, 7), repeat=m - 1):  # the first bin's noise has no effect
            j = int(chosen_by_last_rule(np.array(h) + np.array([0, *noise]), n, target))
            p[j] += np.prod([law[6 + x] for x in noise])
        chosen[h] = p
    worst = 1.0
    for h in histograms(n + 1, m):
        covered = sum(c * chosen[tuple(v - (i == b) for i, v in enumerate(h))][b:].sum() for b, c in enumerate(h) if c)
        worst = min(worst, covered / (n + 1))
    assert promised <= worst + 1e-9
    assert promised > 0.4


def choice_laws(n, m, target, law, reach):
    """Return the distribution of the threshold's index for every histogram, over every noise vector."""
    chosen = {}
    for h in histograms(n, m):
        p = np.zeros(m)
        for noise in itertools.product(range(-reach, reach + 1), repeat=m - 1):  # the first bin's noise has no effect
            j = int(chosen_by_last_rule(np.array(h) + np.array([0, *noise]), n, target))
            p[j] += np.prod([law[reach + x] for x in noise])
        chosen[h] = p
    return chosen


def interleavings(sizes):
    """Yield every order of the records of silos with these sizes, as sequences of silos."""
    if not any(sizes):
        yield ()
    for j, size in enumerate(sizes):
        if size:
            for rest in interleavings((*sizes[:j], size - 1, *sizes[j + 1 :])):
                yield (j, *rest)


@pytest.mark.parametrize(
    "sizes", [(1,), (3,), (1, 1), (1, 2), (2, 2), (1, 3), (3, 3), (1, 1, 1), (1, 1, 2), (1, 2, 2), (1, 1, 1, 1)]
)
def test_every_small_federation_of_unlike_silos_is_covered(sizes):
    """Theorem F7 exactly: n_j + 1 records of each silo in any order, of which any may be the new one.

    The new record comes from silo j with probability n_j/n; coverage of every S_(r) is (r-1)/n or more. Ties and random
    orders are mixtures of these cases.
    """
    n, worst = sum(sizes), [Fraction(1)] * (sum(sizes) + 1)
    for order in interleavings(tuple(size + 1 for size in sizes)):
        places = [[at for at, silo in enumerate(order) if silo == j] for j in range(len(sizes))]
        covered, ways = [0] * (n + 1), math.prod(len(own) for own in places)
        for new in itertools.product(*places):
            ranked = [at for at in range(len(order)) if at not in new]
            for r in range(1, n + 1):
                covered[r] += sum(size for size, at in zip(sizes, new, strict=True) if at <= ranked[r - 1])
        worst = [min(w, Fraction(c, n * ways)) for w, c in zip(worst, covered, strict=True)]
    assert all(worst[r] >= Fraction(r - 1, n) for r in range(1, n + 1))
    assert all(worst[r] < Fraction(r, n) for r in range(1, n + 1))  # a larger guarantee is impossible


@pytest.mark.slow
@pytest.mark.parametrize("target", [6, 4])
def test_mixture_of_unlike_silos_by_enumeration(target):
    """Enumerate the records and one new record of every silo, for any similarity between silos.

    The new record comes from silo j with probability n_j/n. Within a silo each of the n_j+1 records may be the new one.
    """
    sizes, m, scale, reach = (2, 1, 3), 3, 0.4, 6
    n = sum(sizes)
    law = noise_law(scale, 1.5)
    law = law[len(law) // 2 - reach : len(law) // 2 + reach + 1]
    promised = float(SummedReply(n - 1, target - 1, walk_end(law, m - 1)).coverage)
    odds = [size / n for size in sizes]
    chosen = choice_laws(n, m, target, law, reach)
    worst = 1.0
    for all_of in itertools.product(*(histograms(size + 1, m) for size in sizes)):
        covered = 0.0
        for new in itertools.product(range(m), repeat=len(sizes)):
            ways = np.prod([h[b] / (size + 1) for h, b, size in zip(all_of, new, sizes, strict=True)])
            if ways:
                counts = np.sum(all_of, axis=0) - np.bincount(new, minlength=m)
                p = chosen[tuple(int(c) for c in counts)]
                covered += ways * sum(w * p[b:].sum() for w, b in zip(odds, new, strict=True))
        worst = min(worst, covered)
    assert promised <= worst + 1e-9
    assert worst <= promised + len(sizes) / (n + len(sizes))  # within one rank per silo of the true coverage


@pytest.mark.slow
@pytest.mark.parametrize("population", ["common", "mixture"])
def test_a_sum_over_silos_is_one_silo_with_a_random_rank(population):
    """Compare Theorems F6 and F7 with F1 and F2: E[(T - N)+]/(n + 1), for several n and T, in 60 federations.

    The distribution for a single silo is written without its deficit, and its coverage is an integral.
    """
    rng, level, compared = np.random.default_rng(0), Fraction(9, 10), 0
    while compared < 60:
        m, n, candidates = rng.integers(2, 40), int(rng.integers(300, 8000)), int(rng.integers(10, 120))
        deficit = total_deficit(float(rng.uniform(0.3, 6)), int(m), int(rng.integers(1, m + 1)), candidates)
        records, lost = {"common": (n, 0), "mixture": (n - 1, 1)}[population]
        target = smallest(lambda T: certifies([SummedReply(records, T - lost, deficit)], 1, level, None), n)  # noqa: B023
        if target is None:
            continue
        ranks = target - lost - np.arange(len(deficit))
        kept = ranks >= 1
        silo = RandomRankReply(
            records,
            tuple(ranks[kept][::-1].tolist()),
            tuple(deficit[kept][::-1].tolist()),
            max(0.0, float(1 - deficit[kept].sum())),
        )
        extra = records + 1 - n
        published = math.fsum(np.maximum(ranks, 0) * deficit) / (n + extra)
        assert float(SummedReply(records, target - lost, deficit).coverage) == pytest.approx(published, abs=1e-12)
        assert order_statistic_coverage([silo], 1) == pytest.approx(published, abs=1e-12)
        assert float(silo.coverage) == pytest.approx(published, abs=1e-12)
        reply = SummedReply(records, target - lost, deficit)
        for below in (0.85, 0.9, 0.93):
            failure = deficit @ np.where(kept, stats.binom.sf(ranks - 1, records, below), 1.0)
            assert conditional_coverage_failure([reply], 1, below) == pytest.approx(failure, abs=1e-11)
            assert conditional_coverage_failure([silo], 1, below) == pytest.approx(failure, abs=1e-11)
        compared += 1


def test_the_failure_of_a_sum_of_millions_of_records_keeps_its_digits():
    """At n = 2**26 the binomial tail of cephes (`scipy.special.bdtrc`) is 2 % too small."""
    n, target = 2**26, 60398081
    failure = conditional_coverage_failure([SummedReply(n, target, np.ones(1))], 1, 0.9)
    assert failure == pytest.approx(0.4833227064881928, rel=1e-11)  # summed term by term, to 40 digits


def test_training_conditional_failure_by_enumeration():
    n, m, target, scale, reach = 6, 3, 5, 0.4, 6
    law = noise_law(scale, 1.5)
    law = law[len(law) // 2 - reach : len(law) // 2 + reach + 1]
    chosen, deficit = choice_laws(n, m, target, law, reach), walk_end(law, m - 1)
    rng = np.random.default_rng(1)
    for level in (0.4, 0.55):
        bound = conditional_coverage_failure([SummedReply(n, target, deficit)], 1, level)
        worst = 0.0
        some = [
            [level - 1e-9, 1 - level - 1e-9, 2e-9],
            [level - 1e-9, 1e-9, 1 - level],
            [1e-9, level - 2e-9, 1 - level],
        ]
        for population in [*some, *rng.dirichlet(np.ones(m), 20)]:
            weights = stats.multinomial.pmf(list(chosen), n, np.array(population) / np.sum(population))
            fails = np.cumsum(population) < level
            worst = max(worst, float(weights @ np.array([p[fails].sum() for p in chosen.values()])))
        assert 0.3 * bound < worst <= bound + 1e-9


@pytest.mark.slow
def test_installed_noise_covers_unlike_silos_and_not_too_much():
    """Silos whose scores do not overlap, with shares and masks of the installed samplers; exact binomial tests."""
    rng = np.random.default_rng(3)
    sizes, bins, scale = np.array([80, 120, 200]), 60, 0.5
    n, silos = int(sizes.sum()), len(sizes)
    deficit = total_deficit(scale, silos, 2, bins)
    target = smallest(lambda rank: certifies([SummedReply(n - 1, rank - 1, deficit)], 1, Fraction(9, 10), None), n)
    edges = np.linspace(0.1, 2.95, bins - 1)
    keys = [SiloKeys.generate(f"silo {i}") for i in range(silos)]
    roster = [k.public().agreement for k in keys]
    rounds, hits = 400, 0
    for number in range(rounds):
        masked = []
        for j, size in enumerate(sizes):
            scores = np.sort(j + rng.random(size))
            counts = np.diff(np.searchsorted(scores, edges, side="right"), prepend=0, append=size)
            values = counts + noise_share(bins, scale, 2)
            masked.append(mask(values, keys[j].agreement, roster[j], roster, str(number).encode(), 32))
        threshold = np.append(edges, np.inf)[chosen_by_last_rule(open_sum(masked, 32), n, target)]
        j = rng.choice(silos, p=sizes / n)
        hits += j + rng.random() <= threshold
    assert stats.binomtest(hits, rounds, 0.9, "less").pvalue > 1e-6
    # B_(J-1) < T + (the walk's maximum); one more bin is included, with at most 1/40 of the records.
    above = walk_maximum(noise_law(scale, silos / 2), bins - 1)
    at_most = (target + float(np.arange(len(above)) @ above) + 1) / n + 0.025
    assert at_most < 0.97
    assert stats.binomtest(hits, rounds, at_most, "greater").pvalue > 1e-6


def test_failure_of_a_sum_by_simulation():
    deficit = total_deficit(1.0, 4, 3, 20)
    n = 300
    target = smallest(lambda rank: certifies([SummedReply(n, rank, deficit)], 1, Fraction(9, 10), 0.05), n)
    bound = conditional_coverage_failure([SummedReply(n, target, deficit)], 1, 0.9)
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
    # Without one vector, or in another session, the sum is not revealed.
    assert not np.array_equal(open_sum(masked[:3], bits), np.sum(vectors[:3], axis=0))
    other = mask(vectors[0], keys[0].agreement, roster[0], roster, b"two", bits)
    assert not np.array_equal(other, masked[0])
    long = mask(np.zeros(40000, dtype=np.int64), keys[0].agreement, roster[0], roster, b"three", bits)
    top = np.bincount(
        (long >> np.uint64(bits - 4)).astype(int) if bits == 64 else (long >> np.uint32(28)).astype(int), minlength=16
    )
    assert stats.chisquare(top).pvalue > 1e-6


def test_certificate_of_a_mixture_costs_a_rank():
    from confide import federated
    from confide.candidates import Candidates

    silos = [SiloKeys.generate(f"s{i}").public(60) for i in range(5)]
    plans = [
        federated.plan(silos, 0.1, 4.0, method="secure-sum", population=population, candidates=Candidates.unit(40))
        for population in ("common", "mixture")
    ]
    deficit = total_deficit(plans[0].protocol.scale, 5, 3, 40)
    for plan, lost in zip(plans, (0, 1), strict=True):
        replies = [SummedReply(300 - lost, plan.protocol.target - lost - less, deficit) for less in (0, 1)]
        assert plan.certify()[1].coverage == 0.9
        assert replies[0].coverage >= Fraction(9, 10) > replies[1].coverage
    lower = dataclasses.replace(plans[1].protocol, target=plans[1].protocol.target - 1)
    low = dataclasses.replace(plans[1], protocol=lower)
    assert low.certify()[1].coverage == float(SummedReply(299, lower.target - 1, deficit).coverage) < 0.9


def test_a_plan_states_weights_exactly_for_non_iid_silos():
    from confide import federated
    from confide.candidates import Candidates
    from confide.federated.envelope import sign_message, verify_message

    coordinator = SiloKeys.generate("coordinator")
    silos = [SiloKeys.generate(f"s{i}").public(60) for i in range(5)]
    made = federated.plan(silos, 0.1, 4.0, method="secure-sum", candidates=Candidates.unit(40))
    content = verify_message("plan", made.sign(coordinator)).content
    assert content["weights"] == "sizes"
    changes = ({"weights": "equal"}, {"weights": None}, {"population": "common"}, {"method": "private-qq"})
    without = {name: value for name, value in content.items() if name != "weights"}
    for stated in (without, *(content | change for change in changes)):
        with refused(Refusal, "malformed"):
            federated.FederatedPlan.read(sign_message("plan", stated, coordinator.signing))


def test_modulus_leaves_room():
    assert modulus_bits(10**6, 2.0, 5, 3) == 32
    assert modulus_bits(2**31, 2.0, 5, 3) == 64
    assert modulus_bits(10**6, 1e7, 5, 3) == 64
