"""Releases state the versions that drew them; control characters in versions are rejected."""

import json
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest

import confide
from confide.evaluation import Evaluation
from confide.watching import Watch
from tests.files import signed

HERE = {name: version(name) for name in ("confide", "numpy", "opendp", "scipy")}


@pytest.fixture(scope="module")
def made():
    released = confide.calibrate(np.linspace(0, 1, 900), 0.1, 4.0, score="lac")
    return {
        Evaluation: confide.evaluate(released, scores=np.linspace(0, 1, 500), epsilon=4.0),
        Watch: Watch.start(released, epsilon=4.0, batch=500).look("a", [450, 50]),
    }


def holder(content: dict) -> dict:
    return content["looks"][0] if "looks" in content else content


@pytest.mark.parametrize(
    "kind",
    [
        Evaluation,
        Watch,
    ],
)
def test_releases_state_the_versions_that_drew_them(made, kind):
    text = made[kind].to_json()
    content = json.loads(text)
    assert holder(content)["versions"] == HERE
    assert kind.from_json(text) == made[kind]
    assert kind.from_json(text).to_json() == text


@pytest.mark.parametrize(
    "kind",
    [
        Evaluation,
        Watch,
    ],
)
@pytest.mark.parametrize(
    "versions", [{"opendp": "\x1b[2J"}, {"opendp": ""}, {"opendp": "1" * 101}, {"a\nb": "1"}, {"opendp": 1}, ["1"]]
)
def test_invalid_versions_raise(made, kind, versions):
    content = json.loads(made[kind].to_json())
    holder(content)["versions"] = versions
    with pytest.raises(confide.FormatError):
        kind.from_json(signed(content))


def test_versions_are_not_part_of_the_repr(made):
    assert all("opendp" not in repr(one) for one in made.values())
    assert replace(made[Evaluation], versions={}).counts == made[Evaluation].counts
