"""Theorems F5 to F7: noise shares, masks, the certificate of the noisy histogram; and sums of one-hot replies."""

import dataclasses
import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated import FederatedRelease, Refusal
from confide.federated.keys import SiloKeys
from confide.federated.messages import sign
from confide.federated.protocols import FedCP2QQ
from confide.federated.protocols.channels import mask, open_sum
from confide.federated.protocols.secure_sum import (
    LEVEL,
    check_plausible,
    check_scale,
    modulus_bits,
    most_noise,
    noise_law,
    noise_share,
)
from confide.support import scale_for
from tests.builders import slow
from tests.exact import histograms, last_rule_laws, leave_one_out, replaced
from tests.federated.helpers import Federation, content_of, kth_reply
from tests.refused import Refused, refused


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


@pytest.mark.long
@pytest.mark.parametrize(("scale", "honest"), [(2.0, 1), (2.0, 4), (0.4, 3), (7.3, 5)])
def test_honest_shares_add_up_to_discrete_laplace(scale, honest):
    total = sum(noise_share(4000, scale, honest) for _ in range(honest))
    p = np.exp(-1 / scale)
    half = 60 * int(np.ceil(scale))
    x = np.arange(-half, half + 1)
    assert chi_square(total, (1 - p) / (1 + p) * p ** np.abs(x)) > 1e-6


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


@pytest.mark.parametrize("scale", [0.3, 2.0, 12.0])
def test_shares_are_log_concave(scale):
    """The cost of noise is E[X | X > 0] for a log-concave law: so are m' shares and more, and fewer are not."""
    for parameter, concave in ((1.0, True), (1.01, True), (1.5, True), (4.0, True), (30.0, True), (0.5, False)):
        law = noise_law(scale, parameter)
        np.testing.assert_allclose(law, law[::-1], atol=1e-15)
        p = law[law > 1e-9]
        assert (p[1:-1] ** 2 >= p[:-2] * p[2:] * (1 - 1e-6)).all() == concave


def mean_excess(law):
    """E[X | X > 0], the cost in ranks."""
    above = law[len(law) // 2 + 1 :]
    return np.arange(1, len(above) + 1) @ above / above.sum()


def share_law_of(silos, honest, scale, reach):
    """The law of the noise of all silos on -reach..reach, by one share after another."""
    law = np.ones(1)
    for _ in range(silos):
        law = np.convolve(law, share_law(scale, honest))
    return law[len(law) // 2 - reach : len(law) // 2 + reach + 1]


@pytest.mark.parametrize(("target", "m"), [(4, 3), *slow([(5, 3), (2, 3), (3, 4)])])
def test_certificate_against_every_data_set(target, m):
    """Theorem F6: every multiset of 6 points, all noise of 3 silos of which 2 may be honest; noise is not free."""
    n, law = 5, share_law_of(3, 2, 0.5, 8)
    promised = (target - mean_excess(law)) / (n + 1)
    chosen = partial(last_rule_laws(law, m), beyond=n - target)
    worst = min(leave_one_out(chosen, h) for h in histograms(n + 1, m))
    assert promised - 1e-6 <= worst <= promised + (mean_excess(law) + 1) / (n + 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", [6, 4])
def test_mixture_of_unlike_silos_by_enumeration(target):
    """Theorem F7: the records and one new record of every silo, for any similarity between silos, and all noise.

    The new record comes from silo j with probability n_j/n. Within a silo each of the n_j+1 records may be the new one.
    """
    sizes, m, law = (2, 1, 3), 3, share_law_of(3, 2, 0.4, 6)
    n = sum(sizes)
    promised = (target - 1 - mean_excess(law)) / n
    odds, chosen = [size / n for size in sizes], partial(last_rule_laws(law, m), beyond=n - target)
    worst = 1.0
    for all_of in itertools.product(*(histograms(size + 1, m) for size in sizes)):
        covered = 0.0
        for new in itertools.product(range(m), repeat=len(sizes)):
            ways = np.prod([h[b] / (size + 1) for h, b, size in zip(all_of, new, sizes, strict=True)])
            if ways:
                counts = np.sum(all_of, axis=0) - np.bincount(new, minlength=m)
                p = chosen(tuple(int(c) for c in counts))
                covered += ways * sum(w * p[b:].sum() for w, b in zip(odds, new, strict=True))
        worst = min(worst, covered)
    assert promised - 1e-6 <= worst < target / n  # the control: without a cost it would be too much


def interleavings(sizes):
    """Yield every order of the records of silos with these sizes, as sequences of silos."""
    if not any(sizes):
        yield ()
    for j, size in enumerate(sizes):
        if size:
            for rest in interleavings((*sizes[:j], size - 1, *sizes[j + 1 :])):
                yield (j, *rest)


@pytest.mark.slow(unless="sizes1")
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
    """The targets are the least ones that are enough, and a stated one that is smaller promises less."""
    silos = [SiloKeys.generate(f"s{i}").public(60) for i in range(5)]
    for population, lost in (("common", 0), ("mixture", 1)):
        made = federated.plan(
            silos, 0.1, 4.0, method="secure-sum", population=population, candidates=Candidates.unit(40)
        )
        assert (made.first.scale, made.first.honest) == (0.5, 3)
        cost = mean_excess(share_law_of(5, 3, 0.5, 30))
        target, covered = made.first.target, lambda rank: (rank - lost - cost) / (301 - lost)  # noqa: B023
        assert covered(target) >= 0.9 > covered(target - 1)
        assert made.certify()[1].coverage == 0.9
        lower = dataclasses.replace(made.first, target=target - 1)
        assert lower.certify()[1].coverage == pytest.approx(covered(target - 1), abs=1e-9)
        with refused(InputError, "delta"):
            federated.plan(
                silos, 0.1, 4.0, method="secure-sum", population=population, candidates=Candidates.unit(40), delta=0.1
            )


def test_modulus_leaves_room():
    assert modulus_bits(10**6, 2.0, 5, 3) == 32
    assert modulus_bits(2**31, 2.0, 5, 3) == 64
    assert modulus_bits(10**6, 1e7, 5, 3) == 64


# A sum that honest silos cannot produce, and noise that no honest plan has


@pytest.mark.parametrize(("scale", "parameter"), [(0.3, 1.0), (1.0, 1.5), (2.0, 40.0), (10.0, 2.5), (0.01, 3.0)])
@pytest.mark.parametrize("level", [1e-2, 1e-6, 1e-12])
def test_noise_exceeds_its_bound_as_rarely_as_stated(scale, parameter, level):
    law = noise_law(scale, parameter)
    beyond = np.arange(len(law)) - len(law) // 2 > most_noise(scale, parameter, level)
    assert law[beyond].sum() <= level
    looser = np.arange(len(law)) - len(law) // 2 > most_noise(scale, parameter, level) / 2
    assert law[looser].sum() > level or scale < 0.1  # the bound is within a factor of two


def test_an_honest_sum_is_refused_at_the_stated_level_at_most():
    """Test the bounds of all counts and of their total together, by exact distributions."""
    m, n, scale, parameter = 40, 500, 1.5, 2.0
    cell, whole = noise_law(scale, parameter), noise_law(scale, parameter * m)
    room, total = most_noise(scale, parameter, LEVEL / (4 * m)), most_noise(scale, parameter * m, LEVEL / 4)
    x, y = (np.abs(np.arange(len(law)) - len(law) // 2) for law in (cell, whole))
    assert m * cell[x > room].sum() + whole[y > total].sum() <= LEVEL
    for counts in (np.full(m, 12) + np.eye(m, dtype=int)[3] * 20, np.eye(m, dtype=int)[m - 1] * n):
        check_plausible(counts, n, scale, parameter)
        check_plausible(counts + np.eye(m, dtype=int)[5] * int(room), n, scale, parameter)


@pytest.mark.slow(unless=("-3", "swap"))
@pytest.mark.parametrize("change", [-2000, -3, "swap"])
def test_a_wrong_message_of_a_secure_sum_shows(tmp_path, change):
    three = Federation.uniform(tmp_path, *[400] * 3)
    plan = three.plan(method="secure-sum")
    answers = three.answers(plan)
    assert 0 < federated.aggregate(plan, answers).threshold <= 1
    content = content_of(answers[1])
    moved = np.array(content["sent"], dtype=np.int64)
    if change == "swap":  # the total is right, one count is not
        moved += np.where(np.arange(len(moved)), 60, -60 * (len(moved) - 1))
    else:  # -3: every count is plausible, the total is not
        moved += change
    wrong = sign("answer", content | {"sent": (moved % 2**32).tolist()}, three.keys[1].signing)
    with refused(Refusal, "implausible"):
        federated.aggregate(plan, [answers[0], wrong, answers[2]], drop_refused=True)


def test_noise_beyond_all_records_is_refused_before_it_is_paid_for(tmp_path):
    three = Federation.uniform(tmp_path, *[100] * 3)
    with refused(InputError, "epsilon"):
        three.plan(epsilon=1e-6, method="secure-sum")
    assert check_scale(300.0, 300) == 300.0


FEW = Candidates.unit(11)
SUM = {"alpha": 0.2, "epsilon": 10.0, "method": "fedcp2-qq-sum", "candidates": FEW}


@pytest.fixture
def five(tmp_path):
    return Federation.uniform(tmp_path, *[60] * 5, seed=1, budget=100.0)


def reading(text):
    return federated.read_plan(text)


def says(value):
    """Replace the draw: every silo replies with the candidate of this index."""
    return lambda self, own, counts: value if isinstance(value, int) else value[own]


def test_from_plan_to_verified_calibration(five):
    text = five.plan(**SUM)
    plan, alone = reading(text), reading(five.plan(**SUM | {"method": "fedcp2-qq"}))
    assert plan.first.targets == alone.first.targets  # the same ranks, the same k, the same guarantee
    assert plan.certify() == alone.certify()
    assert plan.promises()[5] == alone.promises()[5]
    assert list(plan.promises()) == [5]
    assert plan.loss(0) == plan.privacy().epsilon == 10.0
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    assert (released.coverage, released.privacy.epsilon, released[None].k) == (0.8, 10.0, plan.first.published_k)
    assert released.threshold in plan.candidates.values
    back = FederatedRelease.from_json(released.to_json())
    assert back == released
    assert federated.verify(back, five.coordinator.public(), answers).holds
    assert all(isinstance(output, str) for output in back.sent.values())  # digests hide which silo replied what
    assert federated.replies(text, answers) == {}
    with refused(InputError, "plan"):
        federated.own_share(released, answers[0])
    assert five.ledgers[0].ledger.entry(plan.session).release == five.answer(0, text) == answers[0]
    assert five.ledgers[0].spent == 10.0


@pytest.mark.slow
def test_what_opens_is_how_many_replied_what(five, monkeypatch):
    monkeypatch.setattr(FedCP2QQ, "reply", says([3, 9, 3, 10, 7]))
    text = five.plan(**SUM)
    plan, answers = reading(text), five.answers(text)
    vectors = [federated.read_answer(plan, one).reply for one in answers]
    assert open_sum(vectors, 32).tolist() == [0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 1]
    assert open_sum(vectors[:4], 32).tolist() != [0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1]  # one is missing: no sum
    released = federated.aggregate(text, answers)
    assert released.threshold == FEW.values[[3, 3, 7, 9, 10][released[None].k - 1]]


def test_every_histogram_gives_the_kth_smallest_reply(five):
    few = Candidates.unit(4)
    made = federated.plan(five.silos, 0.3, 12.0, method="fedcp2-qq-sum", candidates=few)
    k = made.certify()[0]
    assert 1 <= k <= 5
    for replies in itertools.combinations_with_replacement(range(4), 5):
        total = np.bincount(replies, minlength=4)
        made.first.check_total(range(5), total)
        assert made.first.read_off(total, k) == few.values[kth_reply(replies, k, 4)]


@pytest.mark.slow(unless="lie1")
@pytest.mark.parametrize("lie", [[1, 1], [0, 0], [2, -1], [-5, 6], [900, -899]])
def test_a_vector_that_is_no_reply(five, monkeypatch, lie):
    """A negative count that another silo's reply offsets is not detected, as the documentation states."""
    honest = FedCP2QQ.draw

    def draw(self, own, counts):
        return np.array([*lie, *[0] * 9]) if own == 0 else honest(self, own, counts)

    monkeypatch.setattr(FedCP2QQ, "draw", draw)
    monkeypatch.setattr(FedCP2QQ, "reply", says([0, 1, 3, 3, 3]))
    text = five.plan(**SUM)
    answers = five.answers(text)
    if lie == [2, -1]:  # cancels the reply of silo 1
        assert federated.aggregate(text, answers).threshold in FEW.values[[0, 3]]
        return
    with refused(Refusal, "implausible"):
        federated.aggregate(text, answers)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"liars": 1}, "liars"),
        ({"epsilon": 0.2}, "silos"),
        ({"population": "mixture"}, "population"),
        ({"method": "private-qq", "colluding": 1}, "colluding"),
        ({"dropouts": 1, "colluding": 1}, "dropouts"),
    ],
)
def test_what_cannot_be_kept_is_refused(five, options, argument):
    with refused(InputError, argument):
        five.plan(**SUM | options)


def test_a_policy_does_not_allow_it_by_default(five):
    signer, allowed = five.coordinator.public().signing, ("fedcp2-qq-sum",)
    good = {"plan": five.plan(**SUM), "scores": five.scores[0], "keys": five.keys[0], "ledger": five.ledgers[0]}
    for policy in (
        federated.Policy(signer, 99.0, 99.0),
        federated.Policy(signer, 99.0, 99.0, methods=allowed),  # the policy pins no peers
        federated.Policy(signer, 99.0, 9.0, methods=allowed, peers=five.policy.peers),
    ):
        Refused(federated.answer, good, {"policy": policy}, "not-allowed", kind=Refusal).check()
    assert five.ledgers[0].spent == 0.0
