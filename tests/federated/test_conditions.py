"""Conditions on a release before it is published: each holds or fails, to the last digit."""

import json
import math

import numpy as np
import pytest

import confide
from confide.cli.app import main
from confide.core import Document, Release
from confide.errors import InputError
from confide.federated import Conditions
from confide.mechanisms import PrivacyStatement
from confide.support import FileKind, kind_of
from confide.watching import Watch
from tests.kept import names, path_of
from tests.refused import refused

READ = (FileKind.RELEASE, FileKind.EVALUATION, FileKind.WATCH)
FILES = [path for path in map(path_of, names()) if kind_of(path) in READ]
"""Every kept file of a kind that `verify` reads."""


def read(path):
    return Document.from_json(path.read_text(encoding="utf-8"))


def stated(privacy):
    """Return the privacy loss of one person, computed from the fields of the statement."""
    k = privacy.records_per_person
    others = [k * one for one in (privacy.add_remove, privacy.replace_one) if one is not None]
    return max(privacy.epsilon, *others)


def promised(document):
    match document:
        case Watch():
            return min(document.settings.promised.values(), default=None)
        case Release() if document.by == "side":
            return document["low"].coverage + document["high"].coverage - 1
        case Release() if document.loss is not None:
            share = document.loss in ("false_negative_rate", "missed_area")
            return 1 - document.risk if share else None
        case Release():
            return min(part.coverage for part in document.parts.values())
    return min(document.query.statements.values())


@pytest.mark.slow(unless=("calibration-infinite", "intervals", "watch-sizes"))
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_kept_file_meets_just_what_it_states(path):
    document = read(path)
    bare = math.isinf(document.privacy.epsilon) and document.privacy.rho is None
    assert Conditions().check(document).holds is not bare
    loss = stated(document.privacy) * (max(1, len(document.looks)) if isinstance(document, Watch) else 1)
    if math.isinf(loss):
        assert not Conditions(epsilon_at_most=1e6).check(document).holds
    elif loss > 0:
        assert Conditions(epsilon_at_most=loss * (1 + 1e-9)).check(document).holds
        assert not Conditions(epsilon_at_most=loss * (1 - 1e-9)).check(document).holds
    coverage = promised(document)
    wrong = Conditions().check(document).failures
    if coverage is None:
        assert Conditions(coverage_at_least=1e-6).check(document).failures != wrong
    else:
        low, high = (round_to(1e6 * coverage) / 1e6 for round_to in (lambda x: math.floor(x + 1e-6), math.ceil))
        if 0 < low < 1:
            assert Conditions(coverage_at_least=low).check(document).failures == wrong
        if 0 < high + 1e-6 < 1:
            assert len(Conditions(coverage_at_least=high + 1e-6).check(document).failures) == len(wrong) + 1
    protected = not bare
    assert Conditions(private=True).check(document).holds is protected
    assert Conditions(signed=True).check(document).failures[-1] == "a signature is required; given: none"
    assert Conditions(signed=True).check(document, "ab" * 32).failures == wrong


class Stated(Release):
    """A release that states only its privacy loss."""

    def __init__(self, privacy):
        self.given = privacy

    privacy = property(lambda self: self.given)
    parts = property(lambda self: {})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_an_epsilon_at_the_border_holds_and_the_next_float_does_not(epsilon):
    document = Stated(PrivacyStatement("replace_one", epsilon, 1, None, epsilon, None))
    assert Conditions(epsilon_at_most=epsilon).check(document).holds
    assert not Conditions(epsilon_at_most=np.nextafter(epsilon, 0)).check(document).holds


def test_the_larger_of_the_relations_counts_unless_one_is_named():
    document = Stated(PrivacyStatement("add_remove", 1.0, 2, 0.5, 0.75, None))
    found = Conditions(epsilon_at_most=1.4).check(document)
    assert found.failures == ("epsilon at most 1.4 is required; stated: 1 under add_remove, 1.5 under replace_one",)
    assert Conditions(epsilon_at_most=1.5).check(document).holds
    assert Conditions(epsilon_at_most=1, neighbors="add_remove").check(document).holds
    assert not Conditions(epsilon_at_most=1, neighbors="replace_one").check(document).holds
    public = Stated(PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None))
    found = Conditions(epsilon_at_most=1, neighbors="add_remove").check(public)
    assert found.failures == ("epsilon at most 1 is required; stated: none under add_remove",)


def test_zcdp_alone_is_private_and_has_no_epsilon():
    document = Stated(PrivacyStatement("replace_one", math.inf, 1, None, math.inf, 0.01))
    assert Conditions(private=True).check(document).holds
    assert not Conditions(epsilon_at_most=1e6).check(document).holds


def test_all_looks_of_a_watch_count():
    watch = read(path_of("watch-alarm"))
    assert len(watch.looks) == 8
    one = stated(watch.privacy)
    assert Conditions(epsilon_at_most=8 * one).check(watch).holds
    (wrong,) = Conditions(epsilon_at_most=np.nextafter(8 * one, 0)).check(watch).failures
    assert wrong.endswith("for a person in all 8 looks")


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon_at_most": 0}, {"epsilon_at_most": math.nan}, {"epsilon_at_most": math.inf}, {"coverage_at_least": 0},
        {"coverage_at_least": 90}, {"coverage_at_least": math.nan}, {"neighbors": "swap"},
    ],
)  # fmt: skip
def test_conditions_that_say_nothing_are_refused(asked):
    with refused(InputError, next(iter(asked))):
        Conditions(**asked)


@pytest.fixture
def released(tmp_path):
    scores = np.random.default_rng(0).random(2000)
    for name, options in {"good": {"epsilon": 1.0, "neighbors": "replace_one"}, "bare": {"mechanism": "none"}}.items():
        confide.calibrate(scores, 0.1, score="lac", **options).save(tmp_path / f"{name}.json")
    return tmp_path


GOOD = ["--epsilon-at-most", "1", "--coverage-at-least", "0.9", "--private"]


def test_the_command_is_a_gate(released, capsys):
    good, bare = str(released / "good.json"), str(released / "bare.json")
    assert main(["verify", good, *GOOD]) == 0
    said = capsys.readouterr()
    assert "coverage of at least 0.9 is required; promised: 0.9" in said.out
    assert said.err == ""
    assert main(["verify", good, "--epsilon-at-most", "0.5", "--coverage-at-least", "0.95", "--signed"]) == 5
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "warning: epsilon at most 0.5 is required; stated: 1 under replace_one",
        "warning: coverage of at least 0.95 is required; promised: 0.9",
        "warning: a signature is required; given: none",
    ]
    assert " is required" not in said.out
    assert main(["verify", bare]) == 5
    assert capsys.readouterr().err.startswith("warning: NOT PRIVATE")
    assert main(["verify", bare, *GOOD, "--json"]) == 5
    output = json.loads(capsys.readouterr().out)
    assert output["holds"] is False
    assert [line.partition(" ")[0] for line in output["wrong"]] == ["NOT", "epsilon"]
    assert main(["verify", good, "--coverage-at-least", "90"]) == 3
    assert main(["verify", good, "--neighbors", "add_remove"]) == 3
