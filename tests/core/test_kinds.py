"""Releases of every kind: thresholds by key, the fields of a single one, and limits for scores."""

import json

import numpy as np
import pytest

import confide
from confide.core import Request, Threshold
from confide.errors import FormatError, InputError, InputTypeError
from tests.calibrations import KINDS, of_kind
from tests.files import signed
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")

OF_ONE = ("threshold", "guarantee", "coverage", "mechanism", "candidates", "recipe", "size", "excludes_nothing")


@pytest.mark.parametrize("name", KINDS)
def test_a_release_is_a_mapping_from_keys_to_thresholds(name):
    release = of_kind(name)
    assert set(release) == set(release.request.terms)
    assert all(isinstance(part, Threshold) for part in release.values())
    assert [release[key] for key in release] == list(release.values()) == list(release.by_name.values())
    assert release.promised == min(part.coverage for part in release.values()) or release.by == "side"
    assert all(release.at(alpha).levels == (alpha,) for alpha in release.levels)
    for field in OF_ONE:
        if release.by is None:
            assert getattr(release, field) == getattr(release.only, field)
        else:
            with refused(InputTypeError, "release"):
                getattr(release, field)


@pytest.mark.parametrize("name", ["levels", "levels, shares", "sides"])
def test_one_of_several_levels_or_sides_is_a_release_with_its_share_of_the_budget(name):
    release = of_kind(name)
    with refused(InputTypeError, "release"):
        release.limits(1)
    for key, part in release.items():
        alone = release.alone(key)
        assert (alone.by, alone.only, alone.privacy) == (None, part, part.privacy)
        assert alone.limits() == part.threshold
        assert confide.Release.from_json(alone.to_json()) == alone


def test_one_threshold_limits_all_records():
    for name in ("guess", "losses"):
        release = of_kind(name)
        assert release.limits() == release.limits(7) == release.threshold
        with refused(InputError, "groups"):
            release.limits(2, groups=["a", "b"])


def test_groups_and_classes_have_separate_thresholds():
    release = of_kind("groups")
    names = list(release)[::-1]
    np.testing.assert_array_equal(release.limits(len(names), groups=names), [release[name].threshold for name in names])
    with refused(InputError, "groups"):
        release.limits(3)
    by_class = of_kind("classes of labels")
    expected = [part.threshold for part in by_class.values()]
    for classes in (3, ["0", "1", "2"], ["cat", "dog", "owl"]):
        np.testing.assert_array_equal(by_class.limits(classes=classes), expected)
    np.testing.assert_array_equal(by_class.limits(classes=[2, 1, 0]), expected[::-1])
    with refused(InputError, "classes"):
        by_class.limits(5)
    with refused(InputError, "classes"):
        by_class.limits(classes=["cat", "dog"])
    with refused(InputError, "groups"):
        by_class.limits(1, groups=[0], classes=3)


def test_the_bound_of_a_share_is_at_least_one():
    """Otherwise any risk could be claimed: it is the bound times a verified number."""
    content = json.loads(of_kind("false negatives").to_json())
    content["request"]["bound"] = 0.1
    with pytest.raises(FormatError):
        confide.Release.from_json(signed(content))
    with refused(InputError, "bound"):
        Request(alpha=0.05, epsilon=1.0, loss="missed_area(background=0)", bound=0.1)


def test_a_group_with_the_mechanism_of_another_number_raises():
    """The target of each group moves with its own noisy number."""
    content = json.loads(of_kind("groups").to_json())
    content["thresholds"][-1]["counted"] += 500
    with pytest.raises(FormatError):
        confide.Release.from_json(signed(content))
