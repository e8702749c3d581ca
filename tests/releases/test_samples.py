"""Every form of release that version 0.2 wrote has a sample; one with changed claims raises, whatever its checksum.

`tests/test_samples_of_0_2.py` reads and writes the samples.
"""

import json
import re

import numpy as np
import pytest

import confide
from confide.candidates import BUILDERS
from confide.errors import FormatError
from confide.releases import Release
from tests.files import signed
from tests.releases.test_kinds import FOLDER, SAMPLES

MECHANISMS = {"slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "none"}
ELSEWHERE = {"spread"}
"""Kinds of candidates whose samples are in the folder `other`."""


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_form_has_a_sample():
    expected = json.loads(text_of("expected.json"))
    plain = [one for one in expected.values() if "mechanism" in one]
    assert {one["mechanism"]["name"] for one in plain if one["mechanism"]} == MECHANISMS
    assert any(one["mechanism"] is None for one in plain)
    assert {one["recipe"]["kind"] for one in plain} == {*BUILDERS, "of", "from_reference", "scores"} - ELSEWHERE
    assert {path.name for path in SAMPLES} == expected.keys()


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


@pytest.mark.parametrize("name", [path.name for path in SAMPLES])
def test_a_changed_sample_raises(name):
    text = text_of(name)
    changed = re.sub(r'"(replace_one)": [^,\n]*', r'"\1": 0.001', text, count=1)
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
        Release.from_json(signed({**json.loads(text), "schema": 3 - content["schema"]}))
