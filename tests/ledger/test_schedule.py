"""Schedules and their files: writing, reading with recomputation, and invalid files."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from confide.errors import ConfideError, FormatError, InputError, InputTypeError
from confide.ledger import Planned, Schedule, budget_plan
from confide.ledger.events import Followed, read_event, schema_of, write_event
from confide.support.shapes import checksum
from fuzz.source import one_line
from tests.refused import refused

YEAR = Schedule(
    3.0,
    1e-6,
    "zcdp",
    (
        Planned("calibration", 12, 12, 0.25, "exponential"),
        Planned("evaluation", 4, 1, 0.2),
        Planned("look", 52, 2, 0.1),
    ),
    records_per_person=3,
)


def sealed(content):
    return json.dumps({**content, "sha256": checksum(content)})


def parts():
    content = json.loads(YEAR.to_json())
    del content["sha256"]
    return content


def test_a_file_says_what_the_schedule_says(tmp_path):
    path = tmp_path / "schedule.json"
    YEAR.save(path)
    assert Schedule.load(path) == YEAR
    assert Schedule.from_json(YEAR.to_json()).to_json() == YEAR.to_json()
    assert YEAR.entry_for("look").per_person == 2
    assert [cost.kind for cost in YEAR.of_one_person] == ["calibration"] * 12 + ["evaluation"] + ["look"] * 2
    with refused(InputError, "schedule"):
        replace(YEAR, entries=YEAR.entries[:2]).entry_for("look")


def test_a_ledger_keeps_it_whole():
    """The record of a schedule, which raises the ledger's schema; it is not computed again when the ledger is read."""
    line = write_event(Followed("patients", YEAR))
    assert read_event(line) == Followed("patients", YEAR)
    assert schema_of(Followed("patients", YEAR)) == 3
    greedy = json.loads(line)
    greedy["schedule"]["entries"][0]["count"] = 10
    with pytest.raises(FormatError):  # one person in 12 of 10
        read_event(json.dumps(greedy))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0.5}, "must be within epsilon = 0.5; together they cost one person"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"dp_delta": 0}, "dp_delta must be 0 for rule='basic'"),
        ({"rule": "basic"}, "dp_delta must be 0 for rule='basic', and above 0 for the others"),
        ({"rule": "pld"}, "selector must be 'permute_and_flip' for rule='pld'"),
        ({"rule": "rdp"}, "rule must be one of"),
        ({"entries": []}, "entries must be some of calibration, evaluation, look"),
        ({"entries": [1]}, "field 'entries' has the wrong type"),
        ({"entries": {}}, "field 'entries' has the wrong type"),
        ({"neighbors": "both"}, "neighbors must be one of"),
        ({"records_per_person": 0}, "records_per_person must be"),
        ({"records_per_person": 1.0}, "has the wrong type"),
        ({"schema": 2}, "schema 2; this version reads up to 1; upgrade"),
        ({"schema": True}, "no valid schema number"),
        ({"kind": "confide.levels"}, "not a confide schedule"),
        ({"extra": 1}, "1 unknown field"),
    ],
)
def test_other_fields_are_refused(change, says):
    with pytest.raises(FormatError):
        Schedule.from_json(sealed(parts() | change))


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, {"epsilon": 0.35}), (0, {"per_person": 13}), (0, {"selector": None}), (0, {"selector": "permute_and_flip"}),
        (2, {"selector": "exponential"}), (1, {"kind": "look"}), (1, {"kind": "calibration"}), (1, {"count": 0}),
        (1, {"count": 1.5}), (1, {"epsilon": 1e7}), (2, {"per_person": 52}), (2, {"more": 1}),
    ],
)  # fmt: skip
def test_other_entries_are_refused(place, change):
    content = parts()
    content["entries"][place] |= change
    with pytest.raises(FormatError):
        Schedule.from_json(sealed(content))


def test_lacking_fields_and_damage_are_refused():
    for name in parts().keys() - {"kind", "schema"}:
        content = parts()
        del content[name]
        with pytest.raises(FormatError):
            Schedule.from_json(sealed(content))
    text = YEAR.to_json()
    with pytest.raises(FormatError):
        Schedule.from_json(text.replace("0.25", "0.24"))
    with pytest.raises(FormatError):
        Schedule.from_json(text[:-3])
    with pytest.raises(FormatError):
        Schedule.from_json(text + " " * 10_000)
    with refused(InputTypeError, "text"):
        Schedule.from_json(text.encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=5) | st.sampled_from([1, 0.1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "count", "x"]), inner),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([*parts(), "new"]),
    st.integers(0, 2),
    st.sampled_from([None, "kind", "count", "per_person", "epsilon", "selector"]),
    JSON,
)
def test_any_value_anywhere_is_read_or_refused(name, place, within, value):
    """A file whose checksum is right and whose content is anything: a schedule that keeps its total, or FormatError."""
    content = parts()
    if within is None:
        content[name] = value
    else:
        content["entries"][place][within] = value
    try:
        read = Schedule.from_json(sealed(content))
    except FormatError as error:
        one_line(error)
    else:
        assert read.loss <= read.epsilon


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_text_is_refused_in_one_line(data):
    text = YEAR.to_json()
    at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 9))
    changed = text[:at] + data.draw(st.text(max_size=4)) + text[at + length :]
    try:
        read = Schedule.from_json(changed)
    except FormatError as error:
        one_line(error)
    else:
        assert read == YEAR


ODD = st.none() | st.booleans() | st.integers(-2, 60) | st.floats() | st.text(max_size=3) | st.fractions(0, 1)


@settings(max_examples=40, deadline=None)
@given(
    st.one_of(st.floats(0.01, 20), ODD),
    st.fixed_dictionaries(
        {},
        optional={
            "releases": ODD, "looks": ODD, "evaluations": ODD, "looks_per_person": ODD, "share": ODD,
            "records_per_person": ODD, "neighbors": ODD, "dp_delta": ODD,
        },
    ),
    st.sampled_from(["basic", "zcdp"]),
)  # fmt: skip
def test_every_request_is_planned_or_refused(epsilon, asked, rule):
    try:
        schedule = budget_plan(epsilon, **asked, rule=rule)
    except ConfideError as error:
        one_line(error)
    else:
        assert schedule.loss <= schedule.epsilon
        assert Schedule.from_json(schedule.to_json()) == schedule
