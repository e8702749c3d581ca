"""A release is frozen, compared by value, and copied and stored without loss."""

import dataclasses
import math
import pickle

import pytest

import confide
from confide import Release
from confide.core import Threshold
from tests.builders import slow
from tests.calibrations import OPTIONS, released
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")


@pytest.mark.parametrize("kind", [Release, Threshold])
def test_frozen(kind):
    value = released("add_remove") if kind is Release else released("add_remove").only
    for field in ["scores", *(field.name for field in dataclasses.fields(kind))]:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
        with pytest.raises(AttributeError):
            delattr(value, field)


def test_a_forged_pickle_raises():
    """Pickles contain the JSON, so they are verified like files."""
    stored = pickle.dumps(released("add_remove"), 0)
    forged = stored.replace(b"0.9", b"0.8")
    assert forged != stored
    with pytest.raises(confide.FormatError):
        pickle.loads(forged)  # noqa: S301


# --- texts


@pytest.mark.parametrize("name", slow(OPTIONS, everyday=["add_remove", "large epsilon"]))
def test_stated_privacy_losses(name):
    privacy = released(name).privacy
    assert released(name).epsilon == privacy.epsilon == privacy.loss(records=privacy.records_per_person)
    assert privacy.loss("replace_one", 5) == 5 * privacy.replace_one
    if privacy.neighbors == "replace_one":
        assert privacy.add_remove is None
        assert privacy.loss("add_remove") == math.inf
    else:
        assert privacy.add_remove / 2 < privacy.replace_one <= 2 * privacy.add_remove
        assert privacy.loss("add_remove", 2) == 2 * privacy.add_remove


@pytest.mark.parametrize("name", ["replace_one", "delta, replace_one", "rho, replace_one", "people, replace_one"])
def test_conditional_coverage_for_a_public_n(name):
    calibration = released(name)
    deltas = [0.5, 0.1, 0.05, 0.01, 1e-6]
    promised = [calibration.conditional_coverage(delta) for delta in deltas]
    assert promised == sorted(promised, reverse=True)
    assert 0.5 < promised[-1] < promised[0] < 1
    assert calibration.conditional_coverage(0.05, n=1000) == promised[2]
    with refused(confide.InputError, "n"):
        calibration.conditional_coverage(0.05, n=999)
    with refused(confide.InputError, "n"):
        calibration.coverage_at_most(999)


def test_conditional_coverage_is_at_least_the_requested_one():
    assert released("delta, replace_one").conditional_coverage(0.05) >= 0.9 - 1e-9
    assert released("delta").conditional_coverage(0.05, n=1000) >= 0.9 - 1e-9
    assert released("delta").conditional_coverage(0.05, n=100_000) >= 0.9 - 1e-9


def test_conditional_coverage_for_a_secret_n():
    calibration = released("add_remove")
    for call in (lambda: calibration.conditional_coverage(0.05), calibration.coverage_at_most):
        with refused(confide.InputError, "n"):
            call()
    assert calibration.conditional_coverage(0.05, 10**6) < calibration.conditional_coverage(0.05, 1000) < 0.9
    assert calibration.n is None  # and remains unknown
    for n in (0, -1):
        with refused(confide.InputError, "n"):
            calibration.conditional_coverage(0.05, n)
    for n in (1.5, True, "5"):
        with refused(confide.InputTypeError, "n"):
            calibration.coverage_at_most(n)


@pytest.mark.parametrize("delta", [0, 1, -1, 2, math.nan, "x"])
def test_delta_is_a_probability(delta):
    with refused(confide.InputError, "delta"):
        released("replace_one").conditional_coverage(delta)


# --- files


def test_save_and_load(tmp_path):
    calibration = released("lac")
    for path in (tmp_path / "a.json", str(tmp_path / "b.json"), tmp_path / "ünï 数.json"):
        calibration.save(path)
        assert Release.load(path) == calibration
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "b.json", "ünï 数.json"]
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == calibration.to_json()


def test_loading_invalid_files_raises(tmp_path):
    with refused(confide.InputError, "path"):
        Release.load(tmp_path / "missing.json")
    with refused(confide.InputError, "path"):
        Release.load(tmp_path)
    for content in (b"", b"{}", b"\xff\xfe\x00", b"PAR1", b"\x00" * 100, released("lac").to_json().encode()[:-20]):
        path = tmp_path / "damaged.json"
        path.write_bytes(content)
        with pytest.raises(confide.FormatError):
            Release.load(path)
