"""Model cards: the metadata follow the Hub's form and equal the release; texts cannot become markup."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import confide
from confide.core import load_release
from confide.support import Section, Table, to_markdown
from tests.golden import VALUES
from tests.kept import path_of
from tests.refused import refused
from tests.reports.pages import HOSTILE, calibration, evaluation, invented

yaml = pytest.importorskip("yaml", reason="reads the metadata of model cards")
SAMPLES = (
    "calibration", "calibration-delta", "calibration-infinite", "calibration-weights",
    "published-method", "levels", "groups", "sides", "risk", "federated", "federated-levels",
)  # fmt: skip


def described(**about):
    """A release with these metadata."""
    return confide.calibrate(confide.lac_score(*invented()), 0.1, 1.0, score="lac", about=about)


def read(card):
    """The metadata of a card, and its text."""
    empty, head, text = card.text.split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(head), text


def metrics(card):
    """All metrics of a card, after checking the required fields of `model-index`, and the patterns of the Hub."""
    found = []
    (model,) = read(card)[0]["model-index"]
    assert isinstance(model["name"], str)
    for result in model["results"]:
        assert set(result) == {"task", "dataset", "metrics"}
        assert re.fullmatch(r"[\w-]+", result["task"]["type"])
        assert re.fullmatch(r"(?:[\w-]+\/)?[\w\-.]+", result["dataset"]["type"], flags=re.ASCII)
        assert result["dataset"]["name"].strip()
        assert result["metrics"]
        for metric in result["metrics"]:
            assert set(metric) == {"type", "name", "value", "args"}
            assert all(isinstance(metric[key], str) for key in ("type", "name"))
            assert isinstance(metric["value"], float)
            assert math.isfinite(metric["value"])
            found.append((result["dataset"]["split"], metric))
    return found


@pytest.mark.slow(unless=("calibration-delta", "calibration-weights", "federated-levels", "federated", "risk", "sides"))
@pytest.mark.parametrize("name", SAMPLES)
def test_metadata_equal_the_release(name):
    released = load_release(path_of(VALUES[name]))
    found = metrics(confide.card(released))
    assert all(split == "calibration" for split, _ in found)
    values = {
        kind: [one["value"] for _, one in found if one["type"] == kind] for _, one in found for kind in [one["type"]]
    }
    promised = [part.coverage for part in released.parts.values()]
    promised += [released.promised] if released.by == "side" else []
    if released.loss is not None:
        assert values["expected_loss"] == [released.risk]
    else:
        assert values.get("coverage", []) == [one for one in promised if one > 0]
    private = math.isfinite(released.privacy.epsilon)
    assert values.get("epsilon", []) == ([released.privacy.epsilon] if private else [])


def test_an_evaluation_of_another_release_is_refused():
    with refused(confide.errors.InputError, "evaluation"):
        confide.card(calibration(), evaluation=evaluation(calibration(epsilon=2.0)))
    with refused(confide.errors.InputTypeError, "release"):
        confide.card(evaluation(calibration()))
    for title in ("", "a\nb", "x" * 201):
        with refused(confide.errors.InputError, "title"):
            confide.card(calibration(), title=title)


@pytest.mark.long
@given(st.text(min_size=1), st.text(min_size=1))
def test_texts_cannot_become_markup(name, value):
    """A fact is one item of a list and a row one row of a table, for every text, and no text makes HTML or a link."""
    section = Section("Title", value, ((name, value),), tables=(Table((name, "b"), ((value, name),)),), notes=(value,))
    tokens = MarkdownIt("commonmark").enable("table").parse(to_markdown(section))
    kinds = [token.type for token in tokens]
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "text_special", "softbreak", "strong_open", "strong_close", "hardbreak"}
    assert not {"html_block", "fence", "code_block", "blockquote_open", "hr"} & set(kinds)
    assert (kinds.count("heading_open"), kinds.count("list_item_open")) == (1, 1)
    assert (kinds.count("tr_open"), kinds.count("td_open")) == (2, 2)


def test_hostile_names_stay_text():
    released = described(model=HOSTILE, data=HOSTILE)
    card = confide.card(released, evaluation=evaluation(released))
    index, text = read(card)
    assert index["model-index"][0]["name"] == HOSTILE
    assert "<" not in re.sub(r"\\<", "", text)
    assert "<script>alert" not in card.html
