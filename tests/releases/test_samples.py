"""Every kind of release of version 0.1 is read by the current reader, has the same texts, and is written the same."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.errors import FormatError
from confide.releases import Release
from tests.files import signed
from tests.releases.samples.made_by_0_1 import summary

FOLDER = Path(__file__).parent / "samples" / "0.1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
KINDS = {"Calibration", "LevelCalibration", "GroupCalibration", "SidesCalibration", "RiskCalibration"}
MECHANISMS = {"slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "none"}


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_kind_has_a_sample():
    assert {one["type"] for one in EXPECTED.values()} == KINDS
    plain = [one for one in EXPECTED.values() if one["type"] == "Calibration"]
    assert {one["mechanism"]["name"] for one in plain if one["mechanism"]} == MECHANISMS
    assert any(one["mechanism"] is None for one in plain)
    assert {path.name for path in FOLDER.glob("*.json")} == {*EXPECTED, "expected.json"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_has_the_same_texts(name):
    release = Release.from_json(text_of(name))
    assert summary(release) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_is_written_unchanged(name):
    assert Release.from_json(text_of(name)).to_json().encode() == (FOLDER / name).read_bytes()


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
@pytest.mark.parametrize("name", ["noisy-histogram.json", "noisy-histogram-replace_one.json"])
def test_a_noisy_histogram_keeps_its_rule_and_is_renewed_by_the_last_one(name):
    """Without `rule` it is of the first rule, in schema 1; the field alone makes it another claim, in schema 3."""
    content, release = json.loads(text_of(name)), Release.from_json(text_of(name))
    assert release.mechanism.rule is None
    assert "rule" not in content["mechanism"]
    renewed = confide.recalibrate(release, np.random.default_rng(0).random(release.guarantee.n or 300))
    assert renewed.mechanism.rule == "last"
    assert renewed.privacy.epsilon == pytest.approx(release.privacy.epsilon)
    again = Release.from_json(renewed.to_json())
    assert (again, json.loads(renewed.to_json())["schema"]) == (renewed, 3)
    for rule in ("last", "first", None):
        with pytest.raises(FormatError):
            Release.from_json(signed({**content, "mechanism": {**content["mechanism"], "rule": rule}}))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_changed_sample_raises(name):
    text = text_of(name)
    changed = re.sub(r'"replace_one": [^,\n]*', '"replace_one": 0.001', text, count=1)
    assert changed != text
    with pytest.raises(FormatError):
        Release.from_json(changed)
    content = json.loads(changed)
    parts = [part["calibration"] for part in content.get("parts", [])]
    for part in parts:
        part.update(json.loads(signed(part)))
    with pytest.raises(FormatError):
        Release.from_json(signed(content))
    with pytest.raises(FormatError):
        Release.from_json(signed({**json.loads(text), "schema": 2}))
