"""Every field of every signed message is replaced by odd values and signed again by its owner: only refusals follow."""

import copy
import json
from typing import NamedTuple

import pytest

from confide import federated
from confide.core import Release
from confide.errors import ConfideError
from confide.federated.envelope import sign_message
from confide.federated.openings import read_part
from fuzz.valid import both_rounds, federation, team
from tests.kept import keys_of, text_of

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


class Case(NamedTuple):
    """A plan, an answer and perhaps a part of its second round, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silo: federated.SiloKeys
    plan: str
    answer: str
    part: str | None = None


def case_of(name):
    if name == "private-qq":
        one = federation()
        return Case(one.coordinator, one.silos[0], one.plan, one.answers[0])
    if name == "opened":
        both = both_rounds()
        return Case(both.coordinator, both.silos[0], both.plan, both.answer, both.part)
    of = team()
    place = ("levels", "groups").index(name)
    return Case(of.coordinator, of.silo, of.plans[place], of.answers[place])


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return case_of(request.param)


@pytest.mark.slow
def test_plans(case):
    plan = json.loads(case.plan)

    def read(text):
        asked, _ = federated.read_plan(text)
        assert asked.rows
        assert asked.privacy()

    kind = plan["kind"].rpartition(".")[2]
    assert refused_or_read(signed(kind, plan["content"], case.coordinator), read) >= FEWEST["plan"]


@pytest.mark.slow
def test_answers_and_parts(case):
    asked, _ = federated.read_plan(case.plan)
    for text, kind, read, head in (
        (case.answer, "answer", federated.read_answer, federated.message_head),
        (case.part, "part", read_part, federated.part_head),
    ):
        if text is not None:
            messages = list(signed(kind, json.loads(text)["content"], case.silo))
            assert refused_or_read(messages, lambda text, read=read: read(asked, text)) >= FEWEST[kind]
            refused_or_read(messages, head)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["federated-levels"])
def test_releases(name):
    release = json.loads(text_of(name))
    kind = release["kind"].rpartition(".")[2]
    messages = signed(kind, release["content"], keys_of("coordinator"), ODD[:12])
    outside = ((path, text) for path, text in messages if path[0] not in ("plan", "plans") or len(path) == 1)
    assert refused_or_read(outside, Release.from_json) >= FEWEST["release"]
