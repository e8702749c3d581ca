"""Files of every kind of version 0.2 are read and written unchanged; changed ones raise errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from confide.errors import FormatError
from confide.releases import Release
from confide.watching import Watch
from tests.builders import slow
from tests.releases.samples.made_by_0_2 import FOLDERS, read, said
from tests.releases.test_samples import signed

TESTS = Path(__file__).parent
EXPECTED = {
    folder / name: summary
    for folder in FOLDERS.values()
    for name, summary in json.loads((TESTS / folder / "expected.json").read_text(encoding="utf-8")).items()
}
DOCUMENTS = [path for path in EXPECTED if path.suffix == ".json"]
SEALED = [path for path in DOCUMENTS if EXPECTED[path].get("type") not in ("Evaluation", "LevelEvaluation")]
"""Those with a checksum."""
HALF = [*DOCUMENTS[::2], *slow(DOCUMENTS[1::2])]
IDS = {"ids": str}


def text_of(path):
    return (TESTS / path).read_text(encoding="utf-8")


def flat(value):
    """The leaves of a summary, floats as they are."""
    if isinstance(value, dict):
        return [leaf for name, one in value.items() for leaf in (name, *flat(one))]
    if isinstance(value, list | tuple):
        return [len(value), *(leaf for one in value for leaf in flat(one))]
    return [value]


def test_every_kind_has_a_sample():
    kept = {path.relative_to(TESTS) for folder in FOLDERS.values() for path in (TESTS / folder).iterdir()}
    assert kept - EXPECTED.keys() == {folder / "expected.json" for folder in FOLDERS.values()}
    assert {json.loads(text_of(path))["kind"] for path in DOCUMENTS} == {
        "confide.calibration", "confide.levels", "confide.groups", "confide.sides", "confide.risk",
        "confide.evaluation", "confide.private-evaluation", "confide.watch",
    }  # fmt: skip


@pytest.mark.parametrize("path", HALF, **IDS)
def test_sample_reads_as_before(path):
    found, expected = flat(said(read(text_of(path)))), flat(EXPECTED[path])
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other)


@pytest.mark.parametrize("path", HALF, **IDS)
def test_sample_is_written_unchanged(path):
    assert read(text_of(path)).to_json().encode() == (TESTS / path).read_bytes()


@pytest.mark.parametrize("path", SEALED, **IDS)
def test_changed_sample_raises(path):
    text = text_of(path)
    changed = re.sub(r'"epsilon": ("\+inf"|\d)', '"epsilon": 9', text, count=1)
    assert changed != text
    with pytest.raises(FormatError, match=r"checksum|altered|damaged"):
        read(changed)
    with pytest.raises(FormatError):
        read(signed({**json.loads(text), "schema": 99}))


def test_a_watch_goes_on_and_a_chain_is_whole():
    state = Watch.from_json(text_of(FOLDERS["watching"] / "coverage.json"))
    assert [one.name for one in state.look("c", np.array([360, 40])).looks] == ["a", "b", "c"]
    release = Release.from_json(text_of(FOLDERS["releases"] / "renewed-twice.json"))
    assert len(said(release)["predecessors"]) == 2
