"""`Watch`: what an alarm means, what a look costs, and a state that says nothing but what follows from it."""

import copy
import dataclasses
import hashlib
import itertools
import json
import math

import numpy as np
import pytest

import confide
from confide.errors import FormatError, InputError
from confide.noisy_counts import coverage_interval, draw_counts
from confide.watching import Settings, Watch, promised_of, size_bins
from confide.watching.course import size_tests
from confide.watching.settings import Reference, reference_of
from tests.calibrations import calibration_at

RELEASE = calibration_at(0.5)
GOOD, BAD = [460, 40], [400, 100]


def watched(*counts, **options):
    watch = Watch.start(RELEASE, **({"epsilon": 1.0, "batch": 500} | options))
    for day, own in enumerate(counts):
        watch = watch.with_look(f"day {day}", own, "2026-01-05T00:00:00+00:00")
    return watch


def test_an_alarm_stays_and_the_course_goes_on():
    watch = watched(*[GOOD] * 3, *[BAD] * 4, *[GOOD] * 30)
    alarmed = [point.alarmed for point in watch.points]
    assert alarmed == [False] * alarmed.index(True) + [True] * (len(alarmed) - alarmed.index(True))
    assert watch.alarm.look.name == f"day {alarmed.index(True)}"
    assert 3 <= alarmed.index(True) <= 6
    assert watch.points[-1].log_evidence < math.log(20)
    assert f"ALARM since look {watch.alarm.look.name!r}" in str(watch)
    assert watched(*[GOOD] * 100).alarm is None


def test_a_group_alone_is_named():
    released = confide.GroupCalibration("group", "add_remove", {"a": RELEASE, "b": calibration_at(0.6)})
    watch = Watch.start(released, epsilon=1.0, batch=1000)
    for day in range(8):
        watch = watch.with_look(str(day), [460, 40, 400, 100])
    assert watch.alarm is not None
    assert watch.named_by(watch.points[-1]) == ["b"]
    assert "surely in b" in str(watch)
    assert watch.points[-1].parts["a"] < 0


def test_sizes_are_compared_with_the_first_look():
    watch = watched(*[[10, 700, 220, 70]] * 30, bins=[0, 1, 2, 3])
    assert watch.alarm is None
    assert not watch.points[0].alarmed
    for day in range(30):
        watch = watch.with_look(f"late {day}", [10, 400, 400, 190])
    assert watch.alarm.look.name.startswith("late")
    assert watch.alarm_at == pytest.approx(2 / 0.05)
    assert "sizes say nothing about coverage" in str(watch)
    assert all("2 and more" in name or "at most 1" in name or "3 and more" in name or "at most" in name
               for name in watch.named_by(watch.points[-1]))  # fmt: skip


def test_the_bounds_of_a_reference_share_half_of_the_error():
    tests = size_tests(Reference((20, 1400, 400, 180), 1.0), [0, 1, 2, 3], 0.05)
    low, high = coverage_interval([1420], [580], 1.0, error=0.05 / 2 / 3, guess=0.5, noises=(2, 2))
    shares = dict(zip(tests.names, tests.least, strict=True))
    assert shares["sets of at most 1"] == low[0]
    assert shares["sets of 2 and more"] == 1 - high[0]


def test_sizes_of_a_private_evaluation_are_a_reference():
    """Its cells are added up over everything but the size, and each bound pays for all their noises."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet([4.0, 2.0, 1.0], 3000)
    y = (p.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    released = calibration_at(0.7)
    found = confide.evaluate(released, probabilities=p, labels=y, epsilon=500.0, parts=["size"])
    reference = reference_of(found, released.checksum, (0, 1, 2, 3))
    sizes = confide.predict_set(p, released).mask.sum(axis=1)
    assert reference.counts == tuple(np.bincount(sizes, minlength=4).tolist())
    assert reference.noises == 2  # covered and missed
    watch = Watch.start(released, epsilon=1.0, batch=500, bins=[0, 1, 2, 3], reference=found)
    assert "against those of a private evaluation" in str(watch)
    assert watch.with_look("a", [0, 300, 150, 50]).points[0].log_evidence != 0
    assert Watch.from_json(watch.to_json()) == watch
    with pytest.raises(InputError, match="names another"):
        reference_of(found, "0" * 64, (0, 1, 2, 3))
    with pytest.raises(InputError, match="other sizes"):
        reference_of(found, released.checksum, (0, 1, 2))
    several = dataclasses.replace(found, question=dataclasses.replace(found.question, records_per_person=2))
    with pytest.raises(InputError, match="one record of each person"):
        reference_of(several, released.checksum, (0, 1, 2, 3))
    plain = confide.evaluate(released, probabilities=p, labels=y, epsilon=1.0, parts=[])
    with pytest.raises(InputError, match="must have set sizes"):
        reference_of(plain, released.checksum, (0, 1, 2, 3))


def test_a_reference_of_hardly_anything_tests_nothing():
    watch = watched([0, 0, 0, 0], *[[500, 0, 0, 0]] * 20, bins=[0, 1, 2, 3], epsilon=0.1)
    assert watch.alarm is None
    assert watch.named_by(watch.points[-1]) == []
    assert "compatible with sets of the sizes of the first look" in confide.report(watch).html


@pytest.mark.parametrize(("neighbors", "people"), [("add_remove", 1), ("replace_one", 1), ("add_remove", 3)])
def test_a_look_costs_what_it_says(neighbors, people):
    """All small tables of two parts and all their neighbours: the largest log ratio of the laws of what leaves."""
    settings = Settings("0" * 64, 0.7, 10, {"a": 0.9, "b": 0.8}, neighbors=neighbors, records_per_person=people)
    assert settings.privacy.loss(neighbors, people) == pytest.approx(0.7)
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


def test_the_noise_that_is_drawn_is_the_stated_one(monkeypatch):
    asked = []

    def drawn(counts, epsilon):
        asked.append((list(counts), epsilon))
        return draw_counts(counts, epsilon)

    monkeypatch.setattr("confide.watching.course.draw_counts", drawn)
    watched(neighbors="replace_one", records_per_person=2).look("Monday", np.array([90, 10]))
    assert asked == [([90, 10], 0.25)]


def test_records_of_one_person_weigh_together():
    """The same noise and counts, of people with one record each, and with up to ten that may be alike."""
    one = watched(*[[840, 160]] * 6, epsilon=1.0, batch=1000)
    ten = watched(*[[840, 160]] * 6, epsilon=10.0, batch=1000, records_per_person=10)
    assert one.settings.noise_epsilon == ten.settings.noise_epsilon
    assert (one.alarm is None, ten.alarm is None) == (False, True)
    assert (ten.points[-1].low, ten.points[-1].high) == (
        pytest.approx(0.84, abs=0.1),
        pytest.approx(0.84, abs=0.1),
    )
    assert ten.points[-1].high - ten.points[-1].low > 1.5 * (one.points[-1].high - one.points[-1].low)
    with pytest.raises(InputError, match="keep one record of each person"):
        watched(bins=[0, 1, 2], records_per_person=2)


def test_a_state_is_read_as_it_was_written():
    for watch in (watched(GOOD, BAD), watched(), watched([1, 2, 3], bins=[0, 1, 2]), watched(error=0.01, looks=7)):
        again = Watch.from_json(watch.to_json())
        assert again == watch
        assert again.points == watch.points
        assert copy.deepcopy(watch) == watch
        assert again.to_json() == watch.to_json()


def altered(change):
    content = json.loads(watched(GOOD, BAD).to_json())
    del content["sha256"]
    change(content)
    body = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "sha256": hashlib.sha256(body.encode()).hexdigest()})


def look(**fields):
    return lambda content: content["looks"][0].update(fields)


@pytest.mark.parametrize(
    "change",
    [
        look(counts=[1]),
        look(counts=[1, 2.0]),
        look(counts=[True, 2]),
        look(counts=[1, 2**51]),
        look(name="day 1"),
        look(name=""),
        look(name=3),
        look(made="yesterday"),
        look(made="2026-01-05"),
        look(more=1),
        lambda c: c.update(epsilon=0),
        lambda c: c.update(epsilon="1"),
        lambda c: c.update(batch=0),
        lambda c: c.update(batch=True),
        lambda c: c.update(planned_looks=0),
        lambda c: c.update(error=1.0),
        lambda c: c.update(tolerance=-0.1),
        lambda c: c.update(tolerance=0.95),
        lambda c: c.update(neighbors="both"),
        lambda c: c.update(records_per_person=0),
        lambda c: c.update(records_per_person=10**6, epsilon=0.5),
        lambda c: c.update(promised=[]),
        lambda c: c.update(promised=[{"name": "", "coverage": 1.5}]),
        lambda c: c.update(promised=[{"name": "a", "coverage": 0.9}] * 2),
        lambda c: c.update(bins=[0, 1]),
        lambda c: c.update(bins=[1, 2], promised=[]),
        lambda c: c.update(reference={"counts": [1, 2], "epsilon": 1.0, "noises": 1}),
        lambda c: c.update(reference={"counts": [], "epsilon": 0.0, "noises": 1}),
        lambda c: c.update(reference=[1, 2]),
        lambda c: c.update(release="x"),
        lambda c: c.update(schema=2),
        lambda c: c.update(more=1),
        lambda c: c.pop("error"),
    ],
)
def test_states_that_cannot_be_are_refused(change):
    with pytest.raises(FormatError):
        Watch.from_json(altered(change))


def test_a_damaged_state_is_refused():
    with pytest.raises(FormatError, match="checksum"):
        Watch.from_json(watched(GOOD).to_json().replace("460", "461"))
    assert Watch.from_json(altered(lambda content: None)) == watched(GOOD, BAD)


def test_a_look_is_taken_once():
    watch = watched(GOOD)
    with pytest.raises(InputError, match="was taken already"):
        watch.look("day 0", GOOD)
    with pytest.raises(InputError, match="counts must be 2 counts"):
        watch.look("new", [1, -1])
    with pytest.raises(InputError, match="look must be a name"):
        watch.look(" ", GOOD)


def test_what_cannot_be_watched_is_refused():
    levels = confide.calibrate_levels(np.linspace(0, 1, 3000), [0.2, 0.1], 1.0)
    with pytest.raises(InputError, match="one level"):
        promised_of(levels)
    with pytest.raises(InputError, match=r"bounds a loss: evaluate each batch by `confide evaluate --epsilon`"):
        promised_of(confide.calibrate_losses(np.zeros((3000, 3)), confide.Candidates.of([0, 1, 2]), 0.1, 1.0, loss="x"))
    with pytest.raises(InputError, match="tolerance must be smaller"):
        watched(tolerance=0.95)


@pytest.mark.parametrize(
    ("n", "tolerance", "delta", "strict"),
    [(1000, 0.02, None, False), (800, 0.02, None, True), (500, 0.05, None, False), (800, 0.02, 0.05, False)],
)
def test_a_tolerance_that_luck_exceeds_is_pointed_out(n, tolerance, delta, strict):
    released = confide.calibrate(np.linspace(0, 1, n), 0.1, 1.0, neighbors="replace_one", delta=delta)
    notes = Watch.start(released, epsilon=1.0, batch=500, tolerance=tolerance).settings.remarks(released)
    assert ["calibrate with delta" in note for note in notes] == [True] * strict


def test_small_looks_are_pointed_out_before_anything_is_charged():
    settings = Watch.start(RELEASE, epsilon=0.1, batch=500).settings
    (note,) = settings.remarks(RELEASE)
    assert "hold small batches back" in note
    assert not Watch.start(RELEASE, epsilon=0.1, batch=2500).settings.remarks(RELEASE)
    assert Watch.start(RELEASE, epsilon=1.0, batch=500).settings.remarks(RELEASE, n_typical=200)


def test_bins_are_public_and_cover_all_sizes():
    for classes in (2, 3, 9, 10, 1000, 10**5):
        bins = size_bins(classes)
        assert bins[0] == 0
        assert bins[-1] <= classes
        assert len(bins) <= 22
    assert Settings("0" * 64, 1.0, 10, bins=(0, 1, 5, 10)).bin_names == ["0", "1-4", "5-9", "10+"]


@pytest.mark.slow
def test_sizes_that_do_not_change_raise_no_alarm():
    from scipy.stats import binomtest

    rng, paths = np.random.default_rng(3), 100
    shares, found = [0.01, 0.7, 0.2, 0.09], 0
    for _ in range(paths):
        watch = watched(bins=[0, 1, 2, 3])
        for day in range(40):
            watch = watch.look(str(day), rng.multinomial(500, shares))
        found += watch.alarm is not None
    assert binomtest(found, paths, 0.05, alternative="greater").pvalue > 1e-6
