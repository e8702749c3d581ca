"""docs/federated-protocol.md names every field of every message, every code and every limit."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from confide import CoverageWarning, federated
from confide.candidates import Candidates
from confide.federated import envelope, release_size
from confide.federated.keys import _MOST as MOST_OF_KEYS
from confide.federated.protocols import channels
from confide.federated.refusals import CODES
from confide.federated.terms import MOST_CANDIDATES, MOST_SILOS
from confide.ledger.events import MOST_RELEASE
from tests.builders import slow
from tests.federated.helpers import Federation

PAGE = (Path(__file__).parents[2] / "docs" / "federated-protocol.md").read_text(encoding="utf-8")


def section(title):
    return re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#)", PAGE, re.MULTILINE | re.DOTALL)[1]


def test_codes_are_those_that_travel():
    listed = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section("Refusal codes"), re.MULTILINE)
    assert dict(listed) == CODES


def test_limits_are_those_of_the_source():
    rows = re.findall(r"^\| (.*) \| ([\d,; ]+) \|$", PAGE.partition("## Limits")[2], re.MULTILINE)
    assert [[int(number.replace(",", "")) for number in numbers.split(";")] for _, numbers in rows] == [
        [MOST_SILOS],
        [MOST_CANDIDATES, channels.MOST_SUMMED],
        [channels.MOST_OPENERS],
        [channels.MOST_ELEMENTS],
        [channels.MOST_LISTED],
        [envelope.MOST_CHARACTERS],
        [release_size.MOST_CHARACTERS_OF_RELEASE],
        [MOST_RELEASE],
        [MOST_OF_KEYS],
    ]


def assert_named(title, text):
    """Assert that each field of the message is in its section, and the five of the envelope in theirs."""
    message = json.loads(text)
    assert all(f"`{name}`" in section("Envelope") for name in message)
    left = {name for name in message["content"] if f"`{name}`" not in section(title)}
    assert not left, title
    return message["content"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "secret", "more"),
    [
        ("private-qq", True, {}),
        ("secure-sum", False, {}),
        ("secure-sum", False, {"dropouts": 1}),
        ("fedcp2-qq-sum", False, {}),
        ("levels", False, {"method": "private-qq"}),
        *slow([("groups", True, {})]),
    ],
)
def test_every_field_is_named(method, secret, more, tmp_path):
    rng, few = np.random.default_rng(0), Candidates.unit(8)
    records = 400 if method == "fedcp2-qq-sum" else 40
    five = Federation(tmp_path, [rng.random(records) for _ in range(5)], secret=secret)
    if method == "levels":
        made = federated.plan_levels(five.silos, [0.4, 0.3], 4.0, candidates=few, **more)
    elif method == "groups":
        made = federated.plan_groups(five.silos, ["a", "b"], 0.4, 4.0, candidates=few, **more)
    else:
        made = federated.plan(five.silos, 0.4, 4.0, method=method, candidates=few, **more)
    text = made.sign(five.coordinator)
    plan = assert_named("Plan: `plan`" if "method" in json.loads(text)["content"] else "Several plans: `plans`", text)
    for one in [json.dumps(part) for part in plan.get("plans", [])]:
        assert_named("Plan: `plan`", one)
    assert_named("Public file: `silo`", five.silos[0].to_json())
    groups = {"groups": ["a", "b"] * (records // 2)} if method == "groups" else {}
    answers = [five.answer(i, text, **groups) for i in range(5)]
    content = assert_named("Answer: `answer`", answers[0])
    assert all(f"`{name}`" in section("Answer: `answer`") for reply in content.get("replies", []) for name in reply)
    parts = five.parts(text, answers)
    for part in parts[:1]:
        assert_named("Opening: `opening`", federated.openings(text, answers, five.coordinator)["silo 0"])
        assert_named("Part: `part`", part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        released = federated.aggregate(text, answers, parts=parts, keys=five.coordinator)
    assert_named("Release", released.to_json())
