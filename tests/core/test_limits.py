"""All kinds of releases have the same interface: the keys of their thresholds, the thresholds, and their limits."""

import numpy as np
import pytest

import confide
from confide.core import FORMS, Release, load_release
from confide.errors import InputError, InputTypeError
from tests.core.test_kinds import KEPT
from tests.kept import path_of
from tests.refused import refused

RELEASES = {name: load_release(path_of(name)) for name in KEPT}


def of(by):
    return next(release for release in RELEASES.values() if release.by == by)


@pytest.mark.parametrize("name", RELEASES)
def test_parts_are_a_mapping_by_key(name):
    release = RELEASES[name]
    assert isinstance(release, Release)
    assert release.by in FORMS
    assert all(isinstance(part, confide.Calibration) for part in release.parts.values())
    assert list(release.by_name.values()) == list(release.parts.values())
    assert release.first == next(iter(release.parts.values()))
    assert release.disjoint == isinstance(release, confide.GroupCalibration)
    assert (release.bounded is not None) == isinstance(release, confide.RiskCalibration)
    assert 0 <= release.promised <= 1
    assert all(release.at(alpha).levels == (alpha,) for alpha in release.levels)


def test_one_threshold_limits_all_records():
    for by in (None, "loss"):
        release = of(by)
        assert release.limits() == release.limits(7) == release.threshold
        with refused(InputError, "groups"):
            release.limits(2, groups=["a", "b"])


def test_groups_and_classes_have_separate_thresholds():
    release = of("group")
    names = list(release.parts)[::-1]
    np.testing.assert_array_equal(release.limits(len(names), groups=names), [release[name].threshold for name in names])
    with refused(InputError, "groups"):
        release.limits(3)
    by_class = confide.calibrate_groups(np.linspace(0, 1, 900), [0, 1, 2] * 300, [0, 1, 2], 0.1, 9.0, by="class")
    expected = [part.threshold for part in by_class.parts.values()]
    for classes in (3, ["0", "1", "2"], ["cat", "dog", "owl"]):
        np.testing.assert_array_equal(by_class.limits(classes=classes), expected)
    np.testing.assert_array_equal(by_class.limits(classes=[2, 1, 0]), expected[::-1])
    with refused(InputError, "classes"):
        by_class.limits(5)
    with refused(InputError, "classes"):
        by_class.limits(classes=["cat", "dog"])
    with refused(InputError, "groups"):
        by_class.limits(1, groups=[0], classes=3)


def test_one_of_several_levels_or_sides_is_chosen():
    for by in ("level", "side"):
        release = of(by)
        with refused(InputTypeError, "release"):
            release.limits(1)
        assert all(part.limits() == part.threshold for part in release.parts.values())
