"""Every kind of evaluation that version 0.2 wrote has a sample, which names its release; changed ones raise.

`tests/test_samples_of_0_2.py` reads and writes the samples.
"""

import hashlib
import json
import re
from pathlib import Path

import pytest

from confide.errors import FormatError
from confide.evaluation import read_evaluation

FOLDER = Path(__file__).parent / "samples" / "0.2"
RELEASES = Path(__file__).parents[1] / "releases" / "samples" / "0.2"
EXPECTED = {
    name: one
    for name, one in json.loads((FOLDER / "expected.json").read_text(encoding="utf-8")).items()
    if not name.startswith("private-")
}
OF_SAMPLES = {
    "sets-groups.json": "groups.json",
    "sets-classes.json": "classes.json",
    "sets-levels.json": "levels.json",
    "intervals-sides.json": "sides.json",
    "scores-risk.json": "risk.json",
}


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_kind_has_a_sample():
    assert {one["type"] for one in EXPECTED.values()} == {"Evaluation", "LevelEvaluation"}
    assert {one["by"] for one in EXPECTED.values() if "by" in one} == {None, "group", "class", "side"}


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
