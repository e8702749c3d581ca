"""Every kind of evaluation as version 0.1 wrote it: today's reader reads the same, and writes it byte by byte."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from confide.errors import FormatError
from confide.evaluation import read_evaluation
from tests.releases.samples.made_by_0_1 import summary

FOLDER = Path(__file__).parent / "samples" / "0.1"
RELEASES = Path(__file__).parents[1] / "releases" / "samples" / "0.1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
OF_SAMPLES = {
    "sets-groups.json": "groups-text.json",
    "sets-classes.json": "classes-text.json",
    "sets-levels.json": "levels.json",
    "intervals-sides.json": "sides.json",
    "scores-risk.json": "risk.json",
}


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_kind_has_a_sample():
    assert {one["type"] for one in EXPECTED.values()} == {"Evaluation", "LevelEvaluation"}
    assert {one["by"] for one in EXPECTED.values() if "by" in one} == {None, "group", "class", "side"}
    assert {path.name for path in FOLDER.glob("*.json")} == {*EXPECTED, "expected.json"}


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_reads_as_before(name):
    assert summary(read_evaluation(text_of(name))) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_sample_is_written_unchanged(name):
    assert read_evaluation(text_of(name)).to_json().encode() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize(("name", "release"), OF_SAMPLES.items())
def test_sample_contains_checksum_of_release(name, release):
    assert read_evaluation(text_of(name)).calibration == hashlib.sha256((RELEASES / release).read_bytes()).hexdigest()


@pytest.mark.parametrize("name", EXPECTED)
def test_changed_sample_raises(name):
    text = text_of(name)
    for changed in (
        re.sub(r'"covered": \d+', '"covered": 61', text, count=1),
        text.replace('"schema": 1', '"schema": 2'),
        text.replace('"promised"', '"promise"', 1),
    ):
        assert changed != text
        with pytest.raises(FormatError):
            read_evaluation(changed)
