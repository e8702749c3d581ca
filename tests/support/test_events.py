"""Log events contain public facts and never a private value, for every caller."""

import logging
import sys
import warnings

import numpy as np
import pytest

import confide
from confide.cli import main
from confide.support import log_event
from tests.builders import slow
from tests.planted_values import PLANTED, assert_no_private_value

N = 4177
"""A secret number of records, which occurs nowhere else."""

ONE = {"alpha": 0.1, "epsilon": 1.0}


@pytest.fixture
def heard(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def texts(heard):
    """All attributes of a record, which any handler may print."""
    return [f"{record.getMessage()} {record.__dict__}" for record in heard.records if record.name.startswith("confide")]


def lines(heard):
    """Messages alone, because other libraries may have set a format of the process's handlers."""
    return "\n".join(record.getMessage() for record in heard.records)


def assert_private(heard, *secrets):
    found = texts(heard)
    for text in found:
        facts = text.replace(f"{heard.handler!r}", "")
        assert_no_private_value(facts)
        for secret in (N, *secrets):
            assert f"={secret}" not in facts
            assert f": {secret}" not in facts
    return [record.event for record in heard.records if record.name.startswith("confide")]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A file of N records with planted scores, labels and people, and the same as arrays."""
    path = tmp_path_factory.mktemp("records") / "records.csv"
    scores = np.resize(np.minimum(PLANTED, 0.9), N)
    lines = [f"{s!r},{1 - s!r},{'ab'[i % 2]}" for i, s in enumerate(scores.tolist())]
    path.write_text("p_a,p_b,y\n" + "\n".join(lines) + "\n")
    return path, scores


@pytest.mark.slow
def test_arrays_with_a_ledger(heard, records, tmp_path):
    ledger = confide.Ledger(tmp_path / "l.db", limit=8.0)
    released = [confide.calibrate(records[1], **ONE, ledger=ledger, dataset="ward 7")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.errors.EarlierReleaseWarning)
        confide.calibrate(records[1], **ONE, ledger=ledger, dataset="ward 7")
    groups = np.resize(["g", "h"], N)
    released += confide.calibrate(
        records[1], groups=groups, names=["g", "h"], ledger=ledger, dataset="ward 7", partition="place", **ONE
    ).parts.values()
    events = assert_private(heard, *(one.threshold for one in released), N // 2, N - N // 2)
    assert {"created", "charged", "released", "answered before", "plan searched"} >= set(events)
    assert events.count("released") == 3
    assert events.count("answered before") == 1
    charged = [record.facts for record in heard.records if getattr(record, "event", "") == "charged"]
    assert [(one["dataset"], one["epsilon"], one["left"]) for one in charged[:1]] == [("ward 7", 1.0, 7.0)]
    assert 'charged dataset="ward 7" epsilon=1 left=7 neighbors=add_remove mechanism=slopes' in lines(heard)


def test_without_listeners_nothing_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "logging")
    log_event("ledger", "charged", dataset="a")
    assert "logging" not in sys.modules


def test_the_logger_is_silent_by_default(capsys):
    log_event("ledger", "charged", dataset="a")
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("confide").handlers)
    assert capsys.readouterr() == ("", "")


CALIBRATE = ["--probabilities", "p_*", "--label", "y", "--alpha", "0.1", "--epsilon", "1", "--dataset", "a", "--json"]


@pytest.mark.parametrize("way", ["-vv", *slow(["-v", "CONFIDE_LOG"])])
def test_a_command_shows_it_on_standard_error(way, records, tmp_path, capsys, monkeypatch):
    before = list(logging.getLogger("confide").handlers)
    if way == "CONFIDE_LOG":
        monkeypatch.setenv(way, "info")
    given = [way] if way.startswith("-") else []
    out = ["--out", str(tmp_path / "r.json"), "--ledger", str(tmp_path / "l.db")]
    assert main([*given, "calibrate", str(records[0]), *CALIBRATE, *out]) == 0
    printed = capsys.readouterr()
    assert "INFO confide.ledger charged dataset=a epsilon=1" in printed.err
    assert "INFO confide.core released score=lac alpha=1/10" in printed.err
    assert ("DEBUG confide.tables counted" in printed.err) == (way == "-vv")
    assert ("rows=secret" in printed.err) == (way == "-vv")
    assert f"={N}" not in printed.err
    assert_no_private_value(printed.err)
    assert printed.out.startswith("{")
    assert logging.getLogger("confide").handlers == before


def test_an_invalid_log_level_raises(monkeypatch, capsys):
    monkeypatch.setenv("CONFIDE_LOG", "loud")
    assert main(["show", "nothing.json"]) == 2
    assert "CONFIDE_LOG must be info or debug" in capsys.readouterr().err
