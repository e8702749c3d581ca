"""`Watch`: what an alarm means, what a look costs, and a state that says nothing but what follows from it."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confide
from confide.errors import InputError, InputTypeError
from confide.evaluation import CountPrivacy
from confide.noisy_counts import coverage_interval
from confide.watching import Settings, Watch, promised_of
from confide.watching.e_process import size_tests
from confide.watching.settings import Reference, reference_of
from tests.calibrations import calibration_at
from tests.draws import SECURE, recording
from tests.refused import Refused, refused

RELEASE = calibration_at(0.5)
GOOD, BAD = [460, 40], [400, 100]


def watched(*counts, **options):
    watch = Watch.start(RELEASE, **({"epsilon": 1.0, "batch": 500} | options))
    for day, own in enumerate(counts):
        watch = watch.with_look(f"day {day}", own, "2026-01-05T00:00:00+00:00")
    return watch


def test_alarm_stays_raised_at_later_looks():
    watch = watched(*[GOOD] * 3, *[BAD] * 4, *[GOOD] * 30)
    alarmed = [point.alarmed for point in watch.points]
    first = alarmed.index(True)
    assert alarmed == [False] * first + [True] * (len(alarmed) - first)
    assert watch.alarm.look.name == f"day {first}"
    assert 3 <= first <= 6
    assert watch.points[-1].log_evidence < math.log(20)
    assert f"ALARM since look {watch.alarm.look.name!r}" in str(watch)
    assert watched(*[GOOD] * 100).alarm is None


@pytest.mark.slow
def test_sizes_are_compared_with_first_look():
    watch = watched(*[[10, 700, 220, 70]] * 30, bins=[0, 1, 2, 3])
    assert watch.alarm is None
    assert not watch.points[0].alarmed
    for day in range(30):
        watch = watch.with_look(f"late {day}", [10, 400, 400, 190])
    assert watch.alarm.look.name.startswith("late")
    assert watch.alarm_at == pytest.approx(2 / 0.05)
    assert set(watch.parts_below(watch.points[-1])) == {"sets of at most 1", "sets of at most 2"}


def test_bounds_of_reference_use_half_of_error():
    tests = size_tests(Reference((20, 1400, 400, 180), 1.0), [0, 1, 2, 3], 0.05)
    low, high = coverage_interval([1420], [580], 1.0, error=0.05 / 2 / 3, guess=0.5, noises=(2, 2))
    shares = dict(zip(tests.names, tests.least, strict=True))
    assert shares["sets of at most 1"] == low[0]
    assert shares["sets of 2 and more"] == 1 - high[0]


def test_private_evaluation_is_reference_for_sizes():
    """Its cells are added up over everything but the size, and each bound accounts for all their noises."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet([4.0, 2.0, 1.0], 3000)
    y = (p.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    released, bins = calibration_at(0.7), (0, 1, 2, 3)
    found = confide.evaluate(released, probabilities=p, labels=y, epsilon=500.0, parts=["size"])
    reference = reference_of(found, released.checksum, bins)
    sizes = confide.predict_set(p, released).mask.sum(axis=1)
    assert reference.counts == tuple(np.bincount(sizes, minlength=4).tolist())
    assert reference.noises == 2  # covered and missed
    watch = Watch.start(released, epsilon=1.0, batch=500, bins=bins, reference=found)
    assert watch.with_look("a", [0, 300, 150, 50]).points[0].log_evidence != 0
    assert Watch.from_json(watch.to_json()) == watch
    several = dataclasses.replace(found, query=dataclasses.replace(found.query, records_per_person=2))
    plain = confide.evaluate(released, probabilities=p, labels=y, epsilon=1.0, parts=[])
    good = {"evaluation": found, "release": released.checksum, "bins": bins}
    for change in ({"release": "0" * 64}, {"bins": (0, 1, 2)}, {"evaluation": several}, {"evaluation": plain}):
        Refused(reference_of, good, change, "reference", kind=InputError).check()


def test_small_reference_gives_no_tests():
    watch = watched([0, 0, 0, 0], *[[500, 0, 0, 0]] * 20, bins=[0, 1, 2, 3], epsilon=0.1)
    assert watch.alarm is None
    assert watch.parts_below(watch.points[-1]) == []


@pytest.mark.slow(unless=("add_remove-1", "replace_one-1"))
@pytest.mark.parametrize(("neighbors", "people"), [("add_remove", 1), ("replace_one", 1), ("add_remove", 3)])
def test_loss_of_look_equals_statement(neighbors, people):
    """All small tables of two parts and all their neighbours: the largest log ratio of the laws of what leaves."""
    settings = Settings("0" * 64, 0.7, 10, {"a": 0.9, "b": 0.8}, neighbors=neighbors, records_per_person=people)
    assert settings.cost.statement.loss(neighbors, people) == pytest.approx(0.7)
    kinds = np.eye(4, dtype=int)

    def tables(k):
        return itertools.combinations_with_replacement(range(4), k)

    worst = 0.0
    for changed in range(1, people + 1):
        for rest, one, other in itertools.product(tables(1), tables(changed), tables(changed)):
            before = kinds[[*rest, *one]].sum(axis=0)
            after = kinds[[*rest, *other]].sum(axis=0) if neighbors == "replace_one" else kinds[list(rest)].sum(axis=0)
            # of independent noise P(z) ~ exp(-e |z|) in each count, the largest log ratio is e times the distance
            worst = max(worst, settings.noise_epsilon * np.abs(before - after).sum())
    assert worst <= 0.7
    assert worst == pytest.approx(0.7)


@pytest.mark.long
@given(
    neighbors=st.sampled_from(["add_remove", "replace_one"]),
    epsilon=st.floats(0.01, 100),
    people=st.integers(1, 1000),
    tables=st.integers(1, 4),
    one_count=st.booleans(),
)
def test_privacy_statement_is_at_least_exact_loss(neighbors, epsilon, people, tables, one_count):
    """In fractions: the noise of all counts that one record changes, under every relation, against what is stated."""
    if neighbors == "add_remove":
        one_count = False
    shape = {"tables": tables, "one_count": one_count}
    secret, public = (CountPrivacy(neighbors, epsilon, people, public_n=known, **shape) for known in (False, True))
    noise, stated = Fraction(secret.noise), secret.statement
    replaced = noise * tables * (1 if one_count else 2)
    assert people * (replaced if neighbors == "replace_one" else noise * tables) <= Fraction(epsilon)
    assert people * noise * secret.changes >= Fraction(epsilon) * (1 - Fraction(1, 2**50))
    assert replaced <= Fraction(stated.replace_one)
    assert one_count or noise * tables <= Fraction(stated.add_remove)
    assert Fraction(stated.epsilon) == Fraction(epsilon) <= people * Fraction(stated.loss(neighbors))
    assert stated.loss(neighbors) <= epsilon / people * (1 + 2**-50)
    assert public.noise == secret.noise
    assert (public.statement.add_remove is None) == (neighbors == "replace_one")


def test_a_reference_needs_a_positive_loss():
    for epsilon in (0.0, -1.0, math.nan):
        with refused(InputError, "epsilon"):
            Reference((20, 10), epsilon)


@pytest.mark.parametrize(("neighbors", "losses"), [("add_remove", (0.25, 0.5)), ("replace_one", (0.125, 0.25))])
def test_each_record_of_a_person_loses_a_share(neighbors, losses):
    stated = CountPrivacy(neighbors, 1.0, 4, public_n=False).statement
    assert (stated.epsilon, stated.add_remove, stated.replace_one) == (1.0, *losses)


def test_drawn_noise_has_stated_scale(draw_with):
    drawn = []
    draw_with(noisy_counts=recording(drawn, SECURE.noisy_counts))
    watched(neighbors="replace_one", records_per_person=2).look("Monday", np.array([90, 10]))
    assert drawn == [([90, 10], 4.0)]


@pytest.mark.slow
def test_records_of_one_person_count_together():
    """The same noise and counts, of people with one record each, and with up to ten that may be alike."""
    one = watched(*[[840, 160]] * 6, epsilon=1.0, batch=1000)
    ten = watched(*[[840, 160]] * 6, epsilon=10.0, batch=1000, records_per_person=10)
    assert one.settings.noise_epsilon == ten.settings.noise_epsilon
    assert (one.alarm is None, ten.alarm is None) == (False, True)
    narrow, wide = one.points[-1], ten.points[-1]
    assert (wide.low, wide.high) == (pytest.approx(0.84, abs=0.1), pytest.approx(0.84, abs=0.1))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


LEVELS = confide.calibrate(np.linspace(0, 1, 3000), [0.2, 0.1], 1.0, candidates=confide.Candidates.unit(10))
START = {"release": RELEASE, "epsilon": 1.0, "batch": 500}
SIZES = {"bins": [0, 1, 2]}
CHANGED = [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": 1e-6, "records_per_person": 10}, "epsilon"), ({"error": 1}, "error"),
    ({"neighbors": "both"}, "neighbors"), ({"tolerance": 0.95}, "tolerance"), ({"tolerance": 1}, "tolerance"),
    ({**SIZES, "tolerance": 0.1}, "tolerance"), ({"release": LEVELS}, "release"), ({"bins": [0, 2, 2]}, "bins"),
    ({**SIZES, "records_per_person": 2}, "records_per_person"),
]  # fmt: skip
BARE = {"release": "0" * 64, "epsilon": 1.0, "batch": 10}
LOOKED = {"name": "new", "counts": GOOD}
REFUSED = [
    *(Refused(Watch.start, START, change, argument, kind=InputError) for change, argument in CHANGED),
    *(Refused(watched(GOOD).look, LOOKED, {"name": name}, "look", kind=InputError) for name in ("day 0", " ")),
    Refused(Watch.start, START, {"batch": 1.5}, "batch", kind=InputTypeError),
    Refused(Watch.start, START, {"bach": 1}, "bach", kind=InputTypeError),
    Refused(Settings, BARE, {}, "promised", kind=InputError),
    Refused(Settings, BARE, {"release": "0"}, "release", kind=InputError),
    Refused(watched(GOOD).look, LOOKED, {"name": 3}, "look", kind=InputTypeError),
    Refused(watched(GOOD).look, LOOKED, {"counts": [1, -1]}, "counts", kind=InputError),
    Refused(watched().with_look, LOOKED, {"made": "2026-01-05"}, "made", kind=InputError),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refusals(row):
    row.check()


def test_risk_control_cannot_be_monitored():
    risk = confide.calibrate_losses(np.zeros((3000, 3)), confide.Candidates.of([0, 1, 2]), 0.1, 1.0, loss="x")
    with refused(InputError, "release"):
        promised_of(risk)
