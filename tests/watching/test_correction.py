"""A threshold that corrects itself: pathwise bounds, the law of the noise, states, documents."""

import copy
import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.core import Release, load
from confide.errors import EarlierReleaseWarning, FormatError, InputError, InputTypeError
from confide.ledger import Dataset, Ledger
from confide.noisy_counts import log_mgf, noise_beyond, noise_law, noise_variance
from confide.tables import ScoreColumn
from confide.watching import Correction, Scale, Watch, watch
from confide.watching.correction import noise_of_coverage, realised_coverage
from tests.calibrations import calibration_at, calibrations_at
from tests.exact import walk_maximum
from tests.files import signed
from tests.refused import Refused, refused
from tests.watching.power import noise

RELEASE, OTHER = (calibration_at(float(confide.Candidates.unit(10).values[k])) for k in (4, 5))
START = {"epsilon": 1.0, "batch": 500}
TIME = "2026-01-05T00:00:00+00:00"


def corrected(*counts, release=RELEASE, **options):
    watch = Watch.start(release, **(START | {"correct": "0.1"} | options))
    for day, own in enumerate(counts):
        watch = watch.with_look(f"day {day}", own, TIME)
    return watch


# Theorem O1, in integers: b errors - a records, positions in steps of the unit, the end of the scale at `top`


def path(plan, walk, top, start, a, b, *, delay=0, floor=False, cap=None):
    """Excess of missed records. A plan has batches and rules: 0 covers all, others miss where that is possible."""
    theta, g, excess = start, [], 0
    for t, (size, rule) in enumerate(plan):
        missed = 0 if theta >= top else size if theta < 0 or rule else 0
        g.append(b * missed - a * size)
        excess += g[-1]
        if t >= delay:
            theta += g[t - delay] + walk[t - delay]
        if floor:
            theta = max(theta, 0)
        if cap is not None:
            theta = min(theta, cap)
    return excess


def bounds(plan, walk, top, start, a, b, *, delay=0, noisy=True):
    """The two bounds of Theorem O1 for a walk of noises that is known."""
    largest = max(size for size, _ in plan)
    sums = np.concatenate([[0], np.cumsum(walk)])[: max(len(plan) - delay, 1)] * noisy
    upper = max(top - start, 0) + (delay + 1) * (b - a) * largest + max(0, (-sums).max())
    return upper, -max(start, 0) - (delay + 1) * a * largest - max(0, sums.max())


@pytest.mark.slow
def test_every_short_path_stays_within_both_bounds():
    """All paths of three looks of up to two records, with noises from -2 to 2, all errors and all starts."""
    for a, b, top in (1, 2, 3), (1, 3, 4):
        reached = [0.0, 0.0]

        def deeper(t, theta, start, got, walk, high, low, largest, a=a, b=b, top=top, reached=reached):
            if t:
                upper = max(top - start, 0) + (b - a) * largest + high
                lower = max(start, 0) + a * largest + low
                assert -lower <= got <= upper
                reached[0] = max(reached[0], got / upper if upper else 0)
                reached[1] = max(reached[1], -got / lower if lower else 0)
            if t == 3:
                return
            for size in (0, 1, 2):
                for missed in (0,) if theta >= top else (size,) if theta < 0 else range(size + 1):
                    g = b * missed - a * size
                    ends = max(high, -walk), max(low, walk), max(largest, size)
                    for z in range(-2, 3):
                        deeper(t + 1, theta + g + z, start, got + g, walk + z, *ends)

        for start in range(-1, top + 2):
            deeper(0, start, start, 0, 0, 0, 0, 0)
        assert min(reached) > 0.8


@pytest.mark.slow
def test_floor_keeps_the_upper_bound_and_cap_at_infinity_breaks_it():
    rng = np.random.default_rng(2)
    for _ in range(1500):
        looks, b = int(rng.integers(1, 40)), int(rng.choice([2, 10, 20]))
        size, delay = int(rng.integers(1, 30)), int(rng.integers(0, 4))
        top = round(size * b / rng.choice([0.05, 0.1, 0.2]))
        start, walk = int(rng.integers(0, top)), (b - 1) * noise(rng, 0.5, looks) - noise(rng, 0.5, looks)
        plan = [(int(rng.integers(0, 2 * size)), bool(rng.integers(2))) for _ in range(looks)]
        upper, _ = bounds(plan, walk, top, start, 1, b, delay=delay)
        assert path(plan, walk, top, start, 1, b, delay=delay, floor=True) <= upper
    # Controls: a cap at the first position that means +inf, and a bound without noise.
    plan, walk = [(10, True)] * 400, np.tile([60, -60], 200)
    upper, _ = bounds(plan, walk, 100, 90, 1, 10)
    assert path(plan, walk, 100, 90, 1, 10, floor=True) <= upper
    assert path(plan, walk, 100, 90, 1, 10, floor=True, cap=100) > 20 * upper
    plan, walk = [(10, True)] * 400, np.full(400, -5)
    silent, _ = bounds(plan, walk, 100, 90, 1, 10, noisy=False)
    assert path(plan, walk, 100, 90, 1, 10) > 2 * silent


def test_noise_in_the_bound_covers_the_exact_law_of_the_walk():
    """Levy's inequality costs little against the exact 95 % quantile, and is never below it."""
    for epsilon, looks in (1.0, 12), (1.0, 52), (0.3, 52):
        a, b = 1, 10
        one = noise_law(epsilon)
        half = len(one) // 2
        stretched = [np.zeros(2 * half * k + 1) for k in (b - a, a)]
        for law, k in zip(stretched, (b - a, a), strict=True):
            law[::k] = one
        exact = np.cumsum(walk_maximum(np.convolve(*stretched), looks - 1))
        found = noise_beyond(epsilon, ((looks - 1, b - a), (looks - 1, a)), 0.05)
        quantile = int(np.searchsorted(exact, 0.95))
        assert quantile <= found <= 1.3 * quantile
    scaled = Correction(Fraction(1, 10), Fraction(1, 10), 0, (Scale("probability", 0.5),))
    size, room = 500, float(1 - Fraction(scaled.scales[0].start, scaled.scales[0].size))
    noise_free = size * room * 10 + 0.9 * size
    assert scaled.worst(size, 1.0, 52) == pytest.approx(
        noise_free + noise_beyond(1.0, ((51, 9), (51, 1)), 0.05) / 10, rel=1e-9
    )


def test_coarse_noise_is_bounded_by_chernoff():
    exact = noise_beyond(0.01, ((10, 9), (10, 1)), 0.05)
    coarse = noise_beyond(0.01, ((10, 9 * 4096), (10, 4096)), 0.05) / 4096
    assert exact < coarse < 1.6 * exact
    s = 1e-4
    assert float(log_mgf(s, 0.5)) == pytest.approx(s**2 / 2 * noise_variance(0.5), rel=1e-5)


# Proposition O2: what the published counts say about the records themselves


def outside(looks, radius, checked):
    """The probability that the noise of the excess is beyond its radius at a checked look, at alpha = 1/2."""
    law = np.convolve(noise_law(1.0), noise_law(1.0)[::-1])
    state, centre, lost = np.array([1.0]), 0, 0.0
    for look in range(1, looks + 1):
        state, centre = np.convolve(state, law), centre + len(law) // 2
        if look in checked:
            far = np.abs(np.arange(len(state)) - centre) > 2 * radius(look) + 1e-9
            lost, state = lost + state[far].sum(), np.where(far, 0.0, state)
    return lost


def radius_of(look, *, sequence=False):
    return realised_coverage(900, 100, look, Fraction(1, 2), 1.0, sequence=sequence).radius


@pytest.mark.parametrize(("looks", "sequence"), [(1, False), (5, False), (16, True)])
def test_statement_on_past_records_errs_as_seldom_as_stated(looks, sequence):
    """By recursion over the exact law of the noise; the other half of the error is for the number of records."""
    checked = range(1, looks + 1) if sequence else [looks]
    lost = outside(looks, lambda look: radius_of(look, sequence=sequence), checked)
    assert (0.0001 if sequence else 0.003) < lost <= 0.025


def test_single_look_radius_is_too_small_for_all_looks():
    """The control: without the correction for many looks the statement fails too often."""
    assert outside(40, radius_of, range(1, 41)) > 0.05
    watch = corrected(*[[450, 50]] * 40)
    assert watch.realised()[0].radius > watch.realised(last=40)[0].radius


def test_share_of_covered_records_lies_between_the_ends():
    """For every true count that the noise allows: excess within the radius, and records within theirs."""
    for covered, missed in (40, 3), (0, 0), (-3, 5), (900, 100), (2, 40):
        found = realised_coverage(covered, missed, 3, Fraction(1, 10), 1.0)
        around = noise_beyond(1.0, ((6, 1),), 0.025)
        assert 0 <= found.low <= found.high <= 1
        for records in range(max(1, covered + missed - around), covered + missed + around + 1):
            for errors in range(records + 1):
                if abs(errors - records / 10 - found.excess) <= found.radius:
                    assert found.low - 1e-12 <= 1 - errors / records <= found.high + 1e-12
    assert realised_coverage(1, 0, 3, Fraction(1, 10), 1.0)[2:] == (0.0, 1.0)


# The library's positions


def test_positions_are_those_of_the_recursion():
    rng = np.random.default_rng(3)
    for parts, batch, gamma, alpha in (1, 500, "1/10", "1/10"), (3, 700, "3/17", "1/3"):
        scales = tuple(Scale("residual", float(threshold)) for threshold in range(1, parts + 1))
        correction = Correction(Fraction(gamma), Fraction(alpha), 0, scales)
        looks = rng.integers(-20, 400, (60, 2 * parts)).tolist()
        found = correction.positions(looks, batch)
        for k, scale in enumerate(scales):
            theta = Fraction(scale.start, scale.size)
            for place, counts in zip(found[1:], looks, strict=True):
                excess = counts[2 * k + 1] - correction.alpha * (counts[2 * k] + counts[2 * k + 1])
                theta = max(theta + correction.gamma * Fraction(parts, batch) * excess, Fraction(0))
                assert place[k] == min(math.floor(theta * scale.size), scale.size)


def test_positions_are_the_same_everywhere():
    """Values that were computed once; integers, so they do not depend on a platform. Huge counts do not overflow."""
    correction = Correction(Fraction(1, 10), Fraction(1, 10), 0, (Scale("probability", 0.5),))
    looks = [[(37 * k) % 101 + 350, (53 * k) % 97] for k in range(40)]
    ends = [place for (place,) in correction.positions(looks, 500)]
    assert ends[:6] == ENDS[:6]
    assert sum(place * (k + 1) for k, place in enumerate(ends)) == ENDS[6]
    assert correction.positions([[-(2**50), 2**50], [2**50, 0]], 1)[1:] == [(2219,), (2219,)]


ENDS = [1001, 985, 989, 974, 983, 972, 855857]


def test_debt_beyond_the_end_is_remembered():
    """The threshold stays +inf until the misses are paid back, which a cap would forget."""
    watch = corrected(*[[0, 500]] * 12, *[[500, 0]] * 80)
    at = [RELEASE.threshold] + [watch.settings.correction.scales[0].at(place) for (place,) in watch.positions[1:]]
    assert at[:3] == sorted(at[:3])
    infinite = [k for k, value in enumerate(at) if math.isinf(value)]
    assert infinite == list(range(infinite[0], infinite[-1] + 1))
    assert len(infinite) > 40
    assert at[-1] < math.inf


SCORES = ["lac", "aps_deterministic", "raps_deterministic(penalty=0.01,k_reg=5)", "margin", "top_k", "cqr", None]


@pytest.mark.parametrize("score", [*SCORES, "absolute_residual"])
def test_correction_starts_at_the_released_threshold(score):
    released = calibration_at(0.5 if score != "top_k" else 2.0, score)
    watch = corrected([400, 100], [100, 400], release=released)
    scale = watch.settings.correction.scales[0]
    assert scale.at(scale.start) == released.threshold
    values = [confide.CorrectedRelease(released, Watch(watch.settings, watch.looks[:k])).threshold for k in range(3)]
    assert values[0] == released.threshold < values[2]
    assert np.all(np.diff(scale.thresholds) > 0)


def test_released_infinity_starts_at_the_end_of_the_scale():
    released = calibration_at(math.inf)
    assert confide.CorrectedRelease(released, corrected(release=released)).threshold == math.inf
    covered = corrected(*[[500, 0]] * 2, release=released)
    assert confide.CorrectedRelease(released, covered).threshold < math.inf
    assert covered.settings.correction.worst(500, 1.0, 1) == pytest.approx(450)


# The watch


def test_looks_do_not_depend_on_the_correction():
    """The whole output is post-processing: the same counts are published, and only public numbers enter the rest."""
    plain, moved = (Watch.start(RELEASE, **START, correct=correct) for correct in (None, "auto"))
    for day, counts in enumerate([[460, 40], [400, 100]]):
        plain, moved = (one.with_look(str(day), counts, TIME) for one in (plain, moved))
    fields = [json.loads(one.to_json()) for one in (plain, moved)]
    assert fields[0]["looks"] == fields[1]["looks"]
    assert set(fields[1]["settings"]) - set(fields[0]["settings"]) == {"correction"}
    assert plain.privacy == moved.privacy
    assert plain.settings.noise_epsilon == moved.settings.noise_epsilon
    assert [point.log_evidence for point in plain.points] == [point.log_evidence for point in moved.points]


def test_groups_have_a_threshold_each():
    released = calibrations_at("group", {"a": RELEASE.threshold, "b": OTHER.threshold})
    watch = corrected([450, 50, 300, 200], release=released, batch=1000)
    one = confide.CorrectedRelease(released, watch)
    assert one["a"].threshold == RELEASE.threshold
    assert one["b"].threshold > OTHER.threshold
    sets = confide.predict_set([[0.5, 0.5]] * 2, one, groups=["a", "b"])
    assert sets.promised == 0
    assert one.promises.keys() == {"group a", "group b"}
    assert confide.CorrectedRelease.from_json(one.to_json()) == one
    alone = corrected([300, 200], release=OTHER)
    assert one["b"].threshold == confide.CorrectedRelease(OTHER, alone).threshold


def test_records_of_a_person_widen_the_noise():
    one, three = (Watch.start(RELEASE, **START, correct=0.1, records_per_person=k) for k in (1, 3))
    assert three.settings.noise_epsilon == pytest.approx(1 / 3)
    correction = one.settings.correction
    worst = [correction.worst(500, watch.settings.noise_epsilon, 52) for watch in (one, three)]
    noise_free = worst[0] - noise_beyond(1.0, ((51, 9), (51, 1)), 0.05) / 10
    assert (worst[1] - noise_free) / (worst[0] - noise_free) == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(("records", "epsilon", "gamma"), [(279, 0.1, "1/20"), (24, 1.0, "1/20"), (500, 1.0, "1/5")])
def test_gamma_follows_from_public_numbers(records, epsilon, gamma):
    watch = Watch.start(RELEASE, epsilon=epsilon, batch=records, correct="auto")
    assert watch.settings.correction.gamma == Fraction(gamma)


def test_noise_at_rest_is_as_predicted():
    """Simulated batches of uniform scores, whose density on the scale is 1: the standard deviation of coverage."""
    rng, gamma, size, epsilon = np.random.default_rng(6), 0.1, 50, 0.3
    theta, course = np.full(200, 0.9), []
    for _ in range(400):
        z = 0.9 * noise(rng, epsilon, 200) - 0.1 * noise(rng, epsilon, 200)
        theta = theta + gamma / size * (rng.binomial(size, 1 - np.clip(theta, 0, 1)) - 0.1 * size + z)
        course.append(np.clip(theta, 0, 1))
    private = noise_of_coverage(Fraction(1, 10), Fraction(1, 10), size, epsilon) ** 2 / 2  # a density of 1, not 2
    sampling = gamma * 0.09 / (2 * size)
    assert np.std(course[100:]) == pytest.approx(math.sqrt(private + sampling), rel=0.1)


SIDES = confide.calibrate_sides(np.tile([-1.0, 1.0], (2000, 1)), np.linspace(-3, 3, 2000), 0.1, 1.0)
SHIFTED = confide.calibrate([0.1, 0.9] * 1000, 0.1, 1.0, score="lac", weights=[1.0, 0.5] * 1000, weight_bound=1.0)


REFUSED = {
    "correct": [
        *({"correct": gamma} for gamma in (0.3, 0, "fast")), *({"release": release} for release in (SIDES, SHIFTED)),
        {"bins": (0, 1, 2)}, {"epsilon": 0.01}, {"batch": 5}, {"records_per_person": 100},
    ],
    "delay": [{"delay": -1}, {"delay": 1001}, {"correct": None, "delay": 1}],
    "release": [{"release": confide.CorrectedRelease(RELEASE, corrected())}],
}  # fmt: skip
CORRECTING = {"release": RELEASE, **START, "correct": 0.1}
PAIR = {"release": RELEASE, "watch": corrected()}


@pytest.mark.parametrize(
    "row",
    [
        *(
            Refused(Watch.start, CORRECTING, own, name, kind=InputError)
            for name, some in REFUSED.items()
            for own in some
        ),
        Refused(Watch.start, CORRECTING, {"correct": True}, "correct", kind=InputTypeError),
        Refused(Watch.start, CORRECTING, {"delay": 1.5}, "delay", kind=InputTypeError),
        Refused(confide.CorrectedRelease, PAIR, {"release": OTHER}, "release", kind=InputError),
        Refused(confide.CorrectedRelease, PAIR, {"watch": Watch.start(RELEASE, **START)}, "watch", kind=InputError),
        Refused(confide.CorrectedRelease, PAIR, {"watch": 1}, "watch", kind=InputTypeError),
    ],
    ids=str,
)
def test_bad_input_is_refused(row):
    row.check()


# The document


def test_corrected_release_is_a_kind_of_its_own(tmp_path):
    one = confide.CorrectedRelease(RELEASE, corrected([400, 100], [440, 60]))
    text = one.to_json()
    assert json.loads(text)["kind"] == "confide/corrected"
    one.save(tmp_path / "in-force.json")
    assert load(tmp_path / "in-force.json") == one == Release.from_json(text)
    assert copy.deepcopy(one) == one
    with pytest.raises(FormatError):
        Watch.from_json(text)
    assert (one.promised, one.first.coverage, one.first.guarantee.kind) == (0, 0, "none")
    for statement, arguments in (one.conditional_coverage, (0.1, 100)), (one.coverage_at_most, (100,)):
        with refused(InputError, "release"):
            statement(*arguments)


def test_release_and_watch_of_a_document_must_fit():
    fields = json.loads(confide.CorrectedRelease(RELEASE, corrected([400, 100])).to_json())
    for change in (
        {"watch": json.loads(Watch.start(RELEASE, **START).to_json())},
        {"release": json.loads(OTHER.to_json())},
    ):
        with pytest.raises(FormatError):
            confide.CorrectedRelease.from_json(signed({**fields, **change}))


# Looks at tables


def scores(*values):
    return pa.table({"s": np.asarray(values, float)})


@pytest.mark.slow
def test_looks_count_at_the_threshold_in_force(tmp_path):
    """All records of a score that the first look misses are covered once the threshold has risen above it."""
    state, what, released = tmp_path / "watch.json", ScoreColumn("s"), calibration_at(0.5, score=None)
    first = watch(scores(*[0.51] * 400), what, released, state=state, look="1", epsilon=1.0, batch=400, correct=0.2)
    assert first.looks[0].counts[1] > 300
    second = watch(scores(*[0.51] * 400), what, released, state=state, look="2", correct="auto")
    assert second.looks[1].counts[0] > 300
    for name, value in ("correct", 0.1), ("delay", 2):
        with refused(InputError, name):
            watch(scores(0.5), what, released, state=state, look="3", **{name: value})
    plain = tmp_path / "plain.json"
    watch(scores(*[0.4] * 400), what, released, state=plain, look="1", epsilon=1.0, batch=400)
    with refused(InputError, "correct"):
        watch(scores(0.5), what, released, state=plain, look="2", correct="auto")


def test_late_labels_are_counted_at_the_threshold_that_was_served(tmp_path):
    state, what, released = tmp_path / "watch.json", ScoreColumn("s"), calibration_at(0.5, score=None)
    options = {"epsilon": 1.0, "batch": 400, "correct": 0.2, "delay": 1, "looks": 200}
    for look in "12":
        found = watch(scores(*[0.51] * 400), what, released, state=state, look=look, **options)
    assert found.looks[1].counts[1] > 300
    assert watch(scores(*[0.51] * 400), what, released, state=state, look="3").looks[2].counts[0] > 300


def test_same_look_at_the_same_batch_is_free_with_a_ledger(tmp_path):
    state, what, released = tmp_path / "watch.json", ScoreColumn("s"), calibration_at(0.5, score=None)
    ledger = Ledger(tmp_path / "budget.db")
    options = {"state": state, "ledger": ledger, "dataset": Dataset("patients")}
    for look in "12":
        batch = scores(*np.linspace(0, 1, 400))
        found = watch(batch, what, released, look=look, epsilon=1.0, batch=400, correct=0.2, **options)
    with pytest.warns(EarlierReleaseWarning):
        assert watch(batch, what, released, look="1", **options) == found
    with pytest.warns(EarlierReleaseWarning):
        assert watch(batch, what, released, look="2", **options) == found
    Watch(found.settings, found.looks[:1]).save(state, overwrite=True)
    with pytest.warns(EarlierReleaseWarning):
        assert watch(batch, what, released, look="2", **options).looks[1].counts == found.looks[1].counts


def test_counting_by_predicted_sets_equals_the_watch():
    """The thresholds in force cover in predictions what the watch counts as covered."""
    one = confide.CorrectedRelease(RELEASE, corrected([400, 100]))
    p = np.random.default_rng(7).dirichlet([2.0, 1.0], 500)
    mask = confide.predict_set(p, one).mask
    assert np.array_equal(mask, 1 - p <= one.threshold)
