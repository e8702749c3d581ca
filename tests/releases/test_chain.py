"""A chain of releases: its statements about predecessors are read and compared; invalid ones raise errors."""

import hashlib
import json
import math
import random

import numpy as np
import pytest

import confide
from confide.core import MOST_PREDECESSORS, Predecessor, Release, predecessors_of, verify_lineage
from confide.errors import FormatError
from fuzz.source import Source, change, one_line
from tests.files import signed
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

PUBLIC = {"neighbors": "replace_one"}
RNG = np.random.default_rng(0)


def scores(n=1000):
    return RNG.beta(2, 5, n)


@pytest.fixture(scope="module")
def chain():
    first = confide.calibrate(scores(), 0.1, 1.0, score="lac", about={"date": "2026-01"}, **PUBLIC)
    second = confide.recalibrate(first, scores(), about={"date": "2026-02"})
    return [first, second, confide.recalibrate(second, scores())]


@pytest.fixture(scope="module")
def nested():
    first = confide.calibrate_levels(scores(), [0.3, 0.1], 2.0, score="lac", **PUBLIC)
    return [first, confide.recalibrate(first, scores())]


def altered(release, **fields):
    """The release with another entry for its first predecessor, and a correct checksum."""
    content = json.loads(release.to_json())
    content["predecessors"][0] |= fields
    return signed(content)


# --- files


def test_a_chain_is_stored_in_files(chain):
    content = json.loads(chain[2].to_json())
    said = [{"sha256": one.checksum, "threshold": one.threshold, "epsilon": 1.0} for one in chain[:2]]
    assert content["predecessors"] == [said[0] | {"date": "2026-01"}, said[1] | {"date": "2026-02"}]
    assert chain[0].checksum == hashlib.sha256(chain[0].to_json().encode()).hexdigest()
    assert "predecessors" not in json.loads(chain[0].to_json())
    for release in chain:
        assert Release.from_json(release.to_json()) == release


def test_every_part_lists_the_same_releases(nested):
    lines = [part.predecessors for part in nested[1].parts.values()]
    assert [line[0].threshold for line in lines] == [part.threshold for part in nested[0].parts.values()]
    assert {line[0].checksum for line in lines} == {nested[0].checksum}
    parts = dict(nested[1].parts)
    level = next(iter(parts))
    parts[level] = nested[0].parts[level]
    with refused(confide.InputError, "parts"):
        confide.LevelCalibration(parts)


@pytest.mark.parametrize(
    "fields",
    [
        {"sha256": "0" * 63}, {"sha256": "g" * 64}, {"threshold": "nan"}, {"threshold": "-inf"}, {"threshold": None},
        {"threshold": True}, {"epsilon": -1.0}, {"epsilon": "1"}, {"date": ""}, {"date": "a\nb"}, {"date": 2026},
        {"number": 1}, {"threshold": 10**400},
    ],
)  # fmt: skip
def test_invalid_entries_raise(chain, fields):
    with pytest.raises(FormatError):
        Release.from_json(altered(chain[2], **fields))


def test_an_altered_chain_raises(chain):
    text = chain[2].to_json()
    with pytest.raises(FormatError):
        Release.from_json(text.replace(chain[0].checksum, "0" * 64))
    content = json.loads(text)
    twice = {**content, "predecessors": [content["predecessors"][0]] * 2}
    with pytest.raises(FormatError):
        Release.from_json(signed(twice))
    with pytest.raises(FormatError):
        Release.from_json(signed({**content, "predecessors": []}))
    content["predecessors"][1]["threshold"] += 1e-6  # the candidates of a warm start are around it
    with pytest.raises(FormatError):
        Release.from_json(signed(content))


def test_the_length_of_a_lineage_is_limited(chain):
    line = tuple(Predecessor(f"{i:064x}", chain[1].threshold, 1.0) for i in range(MOST_PREDECESSORS + 1))
    with refused(confide.InputError, "predecessors"):
        confide.Calibration(**{**vars(chain[0]), "predecessors": line})


@pytest.mark.slow
def test_ten_thousand_altered_chains(chain, nested):
    """For any change of a lineage with a correct checksum: it is read unchanged, or raises a one-line error."""
    rng, read = random.Random(0), 0
    documents = [json.loads(one.to_json()) for one in (*chain[1:], nested[1])]
    for _ in range(10_000):
        content = json.loads(json.dumps(rng.choice(documents)))
        places = [part["calibration"] for part in content.get("parts", [])] or [content]
        place = rng.choice(places)
        source = Source(rng.randbytes(60))
        place["predecessors"] = change({"predecessors": place["predecessors"]}, source).get("predecessors", [])
        for part in content.get("parts", []):
            part["calibration"] = json.loads(_signed(part["calibration"]))
        try:
            release = Release.from_json(_signed(content))
        except FormatError as error:
            one_line(error)
        else:
            read += 1
            assert Release.from_json(release.to_json()) == release
            assert all(one.epsilon >= 0 and not math.isnan(one.threshold) for one in predecessors_of(release))
    assert 100 < read < 9_000


def _signed(content):
    try:
        return signed(content)
    except UnicodeEncodeError:
        return "{}"


# --- links


def test_links_hold(chain):
    found = verify_lineage(chain[2], chain[:2])
    assert (found.holds, len(found.found)) == (True, 2)
    assert verify_lineage(chain[2], [chain[1]]).found[-1] == "not compared: release 1 of the chain"
    assert verify_lineage(chain[0], []).holds


def test_another_release_is_not_a_predecessor(chain):
    other = confide.calibrate(scores(), 0.1, 1.0, score="lac", **PUBLIC)
    assert verify_lineage(chain[2], [other]).wrong == (
        f"the release with SHA-256 {other.checksum[:16]}... is no predecessor of this one",
    )
    assert not verify_lineage(chain[0], [chain[1]]).holds


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"threshold": 0.123456789}, "threshold"), ({"epsilon": 0.5}, "privacy loss"), ({"date": "2025-01"}, "date")],
)
def test_wrong_statements_about_a_predecessor(chain, fields, words):
    output = Release.from_json(altered(chain[2], **fields))
    assert verify_lineage(output, chain[:1]).wrong == (
        f"release 1 of the chain has another {words} than this release says",
    )


@pytest.mark.slow
def test_a_release_of_another_kind_or_level_is_not_the_predecessor(chain, nested):
    of_levels = Release.from_json(altered(chain[2], sha256=nested[0].checksum))
    assert "kind or other parts" in verify_lineage(of_levels, [nested[0]]).wrong[0]
    other = confide.calibrate(scores(), 0.2, 1.0, score="lac", **PUBLIC)
    of_level = Release.from_json(altered(chain[2], sha256=other.checksum))
    assert "another level" in verify_lineage(of_level, [other]).wrong[0]
    line = Release.from_json(altered(chain[1], sha256=chain[2].checksum, date="x"))
    assert verify_lineage(line, [chain[2]]).wrong
