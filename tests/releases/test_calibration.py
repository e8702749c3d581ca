"""A released calibration is frozen, compared by value, and copied and stored without loss."""

import copy
import dataclasses
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import confide
from confide import Calibration
from confide.support import OutputExistsError
from tests.builders import slow
from tests.calibrations import OPTIONS, calibration_at, released
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Calibration)])
def test_frozen(field):
    calibration = released("add_remove")
    with pytest.raises(AttributeError):
        setattr(calibration, field, None)
    with pytest.raises(AttributeError):
        delattr(calibration, field)


def test_mappings_are_read_only_copies():
    recipe, versions = {"kind": "of", "size": 100}, {"confide": "1"}
    calibration = dataclasses.replace(released("add_remove"), recipe=recipe, versions=versions)
    recipe["size"], versions["confide"] = 5, "2"
    assert calibration.recipe["size"] == 100
    assert calibration.versions["confide"] == "1"
    with pytest.raises(TypeError):
        calibration.recipe["size"] = 5
    with pytest.raises(TypeError):
        calibration.versions["confide"] = "2"


def test_attributes_that_do_not_exist_cannot_be_added():
    with pytest.raises(AttributeError):
        released("add_remove").scores = [1.0]


def test_equality_and_hash():
    one = released("add_remove")
    same = dataclasses.replace(one)
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same}) == 1
    for other in (
        calibration_at(0.123),
        dataclasses.replace(one, score="lac"),
        dataclasses.replace(one, versions={}),
        dataclasses.replace(one, recipe={"kind": "of", "size": 100}),
        one.to_json(),
        None,
    ):
        assert one != other


@pytest.mark.parametrize("name", slow(OPTIONS, everyday=["add_remove"]))
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickles_and_copies(name, protocol):
    calibration = released(name)
    assert pickle.loads(pickle.dumps(calibration, protocol)) == calibration  # noqa: S301
    assert copy.copy(calibration) == calibration
    assert copy.deepcopy([calibration])[0] == calibration


def test_pickles_are_read_by_another_process():
    calibration = released("rho, replace_one")
    program = "import pickle, sys; c = pickle.load(sys.stdin.buffer); sys.stdout.write(c.to_json())"
    stored = pickle.dumps(calibration)
    done = subprocess.run([sys.executable, "-c", program], input=stored, capture_output=True, check=True)
    assert done.stdout.decode() == calibration.to_json()


def test_a_forged_pickle_raises():
    """Pickles contain the JSON, so they are verified like files."""
    stored = pickle.dumps(released("add_remove"), 0)
    forged = stored.replace(b"marginal", b"Marginal")
    assert forged != stored
    with pytest.raises(confide.FormatError):
        pickle.loads(forged)  # noqa: S301


# --- texts


@pytest.mark.slow
def test_texts():
    text = str(released("add_remove"))
    threshold = released("add_remove").threshold
    assert text == (
        f"threshold {threshold:.12g} for the unnamed score\n"
        "promise: coverage at least 0.9 on average over calibration data and new records, for every number of records\n"
        "privacy: 1-differential privacy for adding or removing one record\n"
        "records needed: about 90; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or "
        "above every score)"
    )
    assert "records needed" not in str(released("only infinity"))  # no number suffices
    text = str(released("rho, replace_one"))
    assert "from 1000 calibration records" in text
    assert "0.8994-differential privacy and 0.1-zCDP for replacing one record" in text
    assert "score 'lac'" in str(released("lac"))
    assert "with probability 0.95 over the calibration data, coverage at least 0.9" in str(released("delta"))
    assert "adding or removing up to 3 records of a person" in str(released("people"))
    assert "for every number of records from 200 on" in str(released("n_min"))
    assert "threshold +inf (nothing is excluded)" in str(released("only infinity"))
    assert "0-differential privacy" in str(released("too few records"))


@pytest.mark.parametrize("name", slow(OPTIONS, everyday=["add_remove", "large epsilon"]))
def test_stated_privacy_losses(name):
    privacy = released(name).privacy
    assert released(name).epsilon == privacy.epsilon == privacy.loss(records=privacy.records_per_person)
    assert privacy.loss("replace_one", 5) == 5 * privacy.replace_one
    if privacy.neighbors == "replace_one":
        assert privacy.add_remove is None
        assert privacy.loss("add_remove") == math.inf
    else:
        assert privacy.add_remove <= privacy.replace_one <= 2 * privacy.add_remove
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
    assert calibration.conditional_coverage(0.05, 1000) < calibration.conditional_coverage(0.05, 10**6) < 0.9
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
        assert Calibration.load(path) == calibration
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "b.json", "ünï 数.json"]
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == calibration.to_json()


def test_saving_overwrites_only_on_request(tmp_path):
    path = tmp_path / "c.json"
    released("add_remove").save(path)
    with refused(OutputExistsError, "output"):
        released("lac").save(path)
    assert Calibration.load(path) == released("add_remove")
    released("lac").save(path, overwrite=True)
    assert Calibration.load(path) == released("lac")


def test_loading_invalid_files_raises(tmp_path):
    with refused(confide.InputError, "path"):
        Calibration.load(tmp_path / "missing.json")
    with refused(confide.InputError, "path"):
        Calibration.load(tmp_path)
    for content in (b"", b"{}", b"\xff\xfe\x00", b"PAR1", b"\x00" * 100, released("lac").to_json().encode()[:-20]):
        path = tmp_path / "damaged.json"
        path.write_bytes(content)
        with pytest.raises(confide.FormatError):
            Calibration.load(path)


def test_a_large_file_is_not_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(3 * 10**9)
    with pytest.raises(confide.FormatError):
        Calibration.load(path)


# --- use


def test_predictions_of_a_stored_calibration_are_the_same(tmp_path):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 100)
    released("lac").save(tmp_path / "c.json")
    stored = Calibration.load(tmp_path / "c.json")
    np.testing.assert_array_equal(confide.predict_set(p, stored).mask, confide.predict_set(p, released("lac")).mask)
