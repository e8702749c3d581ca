"""Model cards: the metadata follow the Hub's form and equal the release; texts cannot become markup."""

import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import confide
from confide.evaluation import PrivateEvaluation
from confide.releases import load_release
from confide.reports.card import yaml_lines
from confide.support import FileKind, OutputExistsError, Section, Table, kind_of, to_markdown
from tests.golden import VALUES
from tests.kept import path_of
from tests.refused import refused
from tests.reports.pages import ABOUT, HOSTILE, calibration, evaluation, invented

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
    if released.by == "loss":
        assert values["expected_loss"] == [released.risk]
    else:
        assert values.get("coverage", []) == [one for one in promised if one > 0]
    private = math.isfinite(released.privacy.epsilon)
    assert values.get("epsilon", []) == ([released.privacy.epsilon] if private else [])


def test_a_release_without_privacy_has_no_epsilon():
    released = load_release(path_of("none"))
    found = metrics(confide.card(released))
    assert {metric["type"] for _, metric in found} == {"coverage"}
    assert "NOT PRIVATE" in confide.card(released).text


def test_zcdp_alone_is_rho():
    released = load_release(path_of("calibration-rho"))
    stated = {metric["type"]: metric["value"] for _, metric in metrics(confide.card(released))}
    assert stated.get("rho") == released.privacy.rho


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_measured_coverage_has_its_interval(epsilon):
    released, rng = calibration(), np.random.default_rng(3)
    found = confide.evaluate(released, scores=rng.random(3000), **({} if epsilon is None else {"epsilon": epsilon}))
    card = confide.card(released, evaluation=found)
    ((_, metric),) = [one for one in metrics(card) if one[0] == "evaluation"]
    arguments = metric["args"]
    assert (metric["value"], arguments["low"], arguments["high"]) == (
        found.coverage.value,
        found.coverage.low,
        found.coverage.high,
    )
    assert arguments["private"] is isinstance(found, PrivateEvaluation) is (epsilon is not None)
    assert arguments.get("epsilon") == epsilon
    assert ("they are not private" in card.text) is (epsilon is None)


def test_levels_and_losses_are_measured():
    rng = np.random.default_rng(4)
    levels = confide.calibrate_levels(rng.random(3000), [0.2, 0.1], 2.0, score="lac")
    for found in (confide.evaluate(levels, scores=rng.random(3000), **more) for more in ({}, {"epsilon": 1.0})):
        names = [
            metric["name"] for split, metric in metrics(confide.card(levels, evaluation=found)) if split == "evaluation"
        ]
        assert len(names) == 2
        assert len(set(names)) == 2
    losses = np.linspace(1, 0, 5)[None, :].repeat(3000, axis=0) * rng.random((3000, 1))
    grid = confide.Candidates.unit(6)
    risk = confide.calibrate_losses(losses, grid, 0.2, 1.0, loss="own", bound=2.0)
    found = confide.evaluate(risk, scores=rng.random(3000))
    ((_, metric),) = [one for one in metrics(confide.card(risk, evaluation=found)) if one[0] == "evaluation"]
    c = found.coverage
    assert metric["type"] == "expected_loss"
    assert (metric["value"], metric["args"]["low"], metric["args"]["high"]) == (
        2.0 * (1 - c.value),
        2.0 * (1 - c.high),
        2.0 * (1 - c.low),
    )


def test_an_evaluation_of_another_release_is_refused():
    with refused(confide.InputError, "evaluation"):
        confide.card(calibration(), evaluation=evaluation(calibration(epsilon=2.0)))
    with refused(confide.InputTypeError, "release"):
        confide.card(evaluation(calibration()))
    for title in ("", "a\nb", "x" * 201):
        with refused(confide.InputError, "title"):
            confide.card(calibration(), title=title)


def test_metadata_and_options_reach_the_card():
    card = confide.card(described(**ABOUT), task="image-classification")
    index, text = read(card)
    (result,) = index["model-index"][0]["results"]
    assert index["model-index"][0]["name"] == "lesions-resnet"
    assert result["task"] == {"type": "image-classification"}
    assert result["dataset"] == {
        "name": "skin clinic, May and June",
        "type": "skin-clinic-May-and-June",
        "split": "calibration",
    }
    assert "# lesions-resnet" in text
    assert "- **contact**: not stated" in text


leaves = st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.booleans()
keys = st.from_regex(r"k[a-z]{1,8}", fullmatch=True)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, min_size=1) | st.dictionaries(keys, inner, min_size=1), max_leaves=8
)


@pytest.mark.slow
@given(st.dictionaries(keys, trees, min_size=1))
def test_yaml_is_read_back(value):
    """A parser of YAML 1.1 reads every value and type back."""
    lines = list(yaml_lines(value))
    assert yaml.safe_load("\n".join(lines)) == value
    assert all(line.isprintable() for line in lines)


def test_yaml_keeps_the_type_of_small_and_large_numbers():
    values = [1e-5, 1e-300, 1e16, 5e22, sys.float_info.max, 0.1, 1.0, -2.5e-7]
    found = yaml.safe_load("\n".join(yaml_lines({"v": values})))["v"]
    assert found == values
    assert all(isinstance(one, float) for one in found)


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
    assert "<script>alert" not in card.page().html


def test_files_are_markdown_or_html(tmp_path):
    card = confide.card(calibration())
    assert kind_of(card.save(tmp_path / "README.md")) is FileKind.CARD
    assert kind_of(card.save(tmp_path / "card.html")) is FileKind.PAGE
    html = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert "default-src &#39;none&#39;; script-src &#39;none&#39;" in html
    assert "src=" not in html
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == card.text
    assert card._repr_markdown_() in card.text
    for name in ("card.txt", "README"):
        with refused(confide.InputError, "output"):
            card.save(tmp_path / name)
    with refused(OutputExistsError, "output"):
        card.save(tmp_path / "README.md")
