"""Every field of every signed message is replaced by odd values and signed again by its owner: only refusals follow."""

import copy
import json
from pathlib import Path

import pytest

from confide import federated
from confide.errors import ConfideError
from confide.federated.envelope import sign_message
from confide.federated.openings import read_part
from confide.releases import Release

SAMPLES = Path(__file__).parent / "samples" / "0.2"
CASES = ("private-qq", "levels", "groups", "opened")
ODD = (
    *(None, True, -1, 0, 10**30, 2**63, 1.5, 1e308, "", "x", "1/0", "9" * 100),
    *([], {}, [[]], [None], {"a": 1}, "\u0000", "nan"),
)
FEWEST = {"plan": 800, "answer": 80, "part": 80, "release": 120}
"""The least number of mutations of each kind in each case."""


def leaves(value, path=()):
    """Yield the paths of all values in a document; of each list, only the first two elements."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for place in range(min(len(value), 2)):
            yield from leaves(value[place], (*path, place))


def put(document, path, value):
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def signed(kind, content, keys, odd=ODD):
    """Yield the messages with one odd value that can be signed."""
    for path in leaves(content):
        for value in odd if path else ():
            try:
                yield path, sign_message(kind, put(content, path, value), keys.signing)
            except ValueError:  # not JSON
                continue


def refused_or_read(messages, read):
    """Count the messages. Any exception other than a refusal fails the test."""
    count = 0
    for path, text in messages:
        count += 1
        try:
            read(text)
        except ConfideError:
            continue
        except Exception as error:
            raise AssertionError(f"{path} gave {error!r}") from error
    return count


@pytest.fixture(scope="module")
def keys():
    return [federated.SiloKeys.load(path) for path in sorted((SAMPLES / "keys").glob("*.json"))]


@pytest.fixture(scope="module", params=CASES)
def case(request, keys):
    folder = SAMPLES / request.param
    text = (folder / "plan.json").read_text()
    plan = json.loads(text)
    owner = next(one for one in keys if one.public().signing == plan["signer"])
    return folder, plan, owner, federated.read_plan(text)[0]


@pytest.mark.slow
def test_plans(case):
    _, plan, owner, _ = case

    def read(text):
        asked, _ = federated.read_plan(text)
        assert asked.rows
        assert asked.privacy()

    kind = plan["kind"].rpartition(".")[2]
    assert refused_or_read(signed(kind, plan["content"], owner), read) >= FEWEST["plan"]


@pytest.mark.slow
def test_answers_and_parts(case, keys):
    folder, _, _, asked = case
    owners = {one.name: one for one in keys}
    for file, kind, read, head in (
        ("answers", "answer", federated.read_answer, federated.message_head),
        ("parts", "part", read_part, federated.part_head),
    ):
        if not (folder / f"{file}.json").exists():
            continue
        content = json.loads(json.loads((folder / f"{file}.json").read_text())[0])["content"]
        messages = list(signed(kind, content, owners[content["silo"]]))
        assert refused_or_read(messages, lambda text, read=read: read(asked, text)) >= FEWEST[kind]
        refused_or_read(messages, head)


@pytest.mark.slow
def test_releases(case):
    folder, _, owner, _ = case
    release = json.loads((folder / "released.json").read_text())
    if "signature" not in release:
        pytest.skip("this release is not signed")
    kind = release["kind"].rpartition(".")[2]
    messages = signed(kind, release["content"], owner, ODD[:12])
    outside = ((path, text) for path, text in messages if path[0] not in ("plan", "plans") or len(path) == 1)
    assert refused_or_read(outside, Release.from_json) >= FEWEST["release"]
