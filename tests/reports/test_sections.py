"""Other sections of a page: examples, who made it of what, what was spent, the worst class, the price, the terms."""

import re
import shlex
import warnings

import numpy as np
import pytest

import confide
from confide.cli.choices import parse_metadata
from confide.evaluation import evaluate_sets
from confide.planning import Pilot
from confide.releases import ABOUT, making_facts
from confide.reports.page import TERMS
from confide.reports.protection import EXAMPLES
from confide.reports.thresholds import worked_example
from tests.refused import refused
from tests.reports.pages import CLASSES, calibration, evaluation
from tests.reports.test_pages import page_of, words_of

pytestmark = pytest.mark.xdist_group("released")
PUBLIC = {"neighbors": "replace_one"}
UNEXPLAINED = {"mechanism", "calibration records", "made with"}


def released_at(score, threshold):
    """A release whose threshold is about what is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        options = PUBLIC | {"candidates": confide.Candidates.of([threshold])}
        return confide.calibrate(np.full(400, threshold), 0.1, 5.0, score=score, **options)


@pytest.mark.parametrize(
    ("score", "threshold"),
    [("lac", 1e-6), ("lac", 0.0088), ("lac", 0.5), ("lac", 0.9958), ("lac", 0.999999),
     ("aps_deterministic", 0.3), ("aps_deterministic", 0.9), ("aps", 0.9999), ("margin", -0.99), ("margin", 0.3)],
)  # fmt: skip
def test_examples_differ_for_every_threshold(score, threshold):
    release = released_at(score, threshold)
    assert release.threshold == threshold
    example = worked_example(release)
    answers = [record.answer for record in example.records]
    assert len(set(answers)) == len(answers) >= 2
    for record in example.records:
        members = [name for name, (_, held) in zip("ABCDE", record.labels, strict=True) if held]
        assert record.answer == ("{" + ", ".join(members) + "}" if members else "the empty set")
        if score == "lac":
            assert all(held == (float(p) >= 1 - threshold) for p, held in record.labels if float(p) not in (0.0, 1.0))


def test_equal_sets_show_one_record():
    assert [record.answer for record in worked_example(released_at("top_k", 2.0)).records] == ["{A, B}"]


@pytest.mark.slow
def test_metadata_and_missing_metadata():
    output = {"model": "resnet <50>", "contact": "dpo@example.org"}
    options = PUBLIC | {"candidates": confide.Candidates.of([0.9]), "score": "lac", "about": output}
    release = confide.calibrate(np.full(400, 0.9), 0.1, 5.0, **options)
    text = page_of(release)
    words = words_of(text)
    assert "model resnet <50> version of the model not stated" in words
    assert "contact dpo@example.org" in words
    assert text.count('class="unsaid"') == len(EXAMPLES) - 2
    command = re.search(r"<code>(--about .*?)</code>", text)[1]
    given = parse_metadata(shlex.split(command.replace("&#39;", "'"))[1::2])
    assert set(given) == set(EXAMPLES) - set(output)
    assert set(EXAMPLES) <= set(ABOUT)


@pytest.mark.slow
def test_spending_of_data(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=4.0, by="trial office")
    known, scores = {"ledger": ledger, "dataset": "patients"}, np.random.default_rng(0).random(3000)
    confide.calibrate(scores, 0.2, 0.75, score="lac", **known)
    released = confide.calibrate(scores, 0.1, 0.5, score="lac", **known)
    confide.calibrate(scores, 0.05, 0.25, score="lac", **known)
    levels = confide.calibrate_levels(scores, [0.3, 0.15], 1.0, **known)
    words = words_of(page_of(released, ledger=ledger))
    assert "Spent before this release ε = 0.75 " in words
    assert "by trial office Spent with it ε = 1.25 Spent by now ε = 2.5, in 5 releases Limit ε = 4" in words
    assert "Left for one more release ε = 1.5" in words
    several = words_of(page_of(levels, ledger=tmp_path / "budget.db"))
    assert "Spent before this release ε = 1.5 " in several
    assert "Spent with it ε = 2.5 " in several
    assert "What the data have spent" not in words_of(page_of(released))
    with refused(confide.InputError, "ledger"):
        page_of(calibration(), ledger=ledger)


@pytest.mark.slow
def test_plan_for_intervals_mentions_intervals():
    words = words_of(page_of(confide.plan(alpha=0.1, epsilon=1.0, n=1000, score="absolute_residual", unit=1.0)))
    assert "the true value is in the interval for at least" in words
    assert "that is, longer intervals" in words
    assert not re.search(r"\b[sS]ets\b(?! with a coverage)|in their set\b", words)
    assert "larger sets" in words_of(page_of(confide.plan(alpha=0.1, epsilon=1.0, n=1000)))


@pytest.mark.slow
def test_worst_class_is_named_with_remedy():
    released = calibration()
    text = page_of(released, evaluation=evaluation(released, CLASSES))
    assert re.search(r"worst class \w+: [\d.]+ \(95 % interval [^)]*\), below 0.9 beyond chance", words_of(text))
    assert "Calibrate by class for a promise to each class" in text
    assert re.search(r'<h3 id="by-class">.*?confide calibrate .*? --by-class --out', text, re.DOTALL)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    fair = words_of(
        page_of(released_at("lac", 0.99), evaluation=evaluate_sets(released_at("lac", 0.99), p, p.argmax(1)))
    )
    assert "worst class" in fair
    assert "below 0.9 beyond chance" not in fair
    assert "A promise for every class" not in fair


def test_text_about_intervals_of_one_width():
    said = words_of(page_of(released_at("absolute_residual", 1.0)))
    assert "All of them have one width. It shows how far the model errs among all records" in said
    assert "Short intervals mean that it is sure" not in said
    assert "Short intervals mean that it is sure" in words_of(page_of(released_at("normalised_residual", 1.0)))
    assert "No file can prove that the threshold was drawn with noise" in said


def test_a_page_is_saved_as_html(tmp_path):
    page = confide.report(released_at("lac", 0.9))
    with pytest.raises(confide.InputError):
        page.save(tmp_path / "x.pdf")
    assert page.save(tmp_path / "x.HTM").exists()


@pytest.mark.slow
def test_pilot_gives_cost_in_sizes():
    p = np.random.default_rng(0).dirichlet(np.ones(4) / 9, 300)
    pilot = Pilot(confide.lac_score(p, p.argmax(axis=1)), confide.all_scores(p))
    chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000, pilot=pilot)
    own = f"{chosen.on_pilot.size:.3g} classes in a set; {chosen.on_pilot.plain_size:.3g} without privacy"
    assert f"price in sets {own}" in words_of(page_of(chosen))
    assert "price in sets" not in words_of(page_of(confide.plan(alpha=0.1, epsilon=1.0, n=1000)))


@pytest.mark.slow
def test_terms_are_explained():
    releases = [calibration(), calibration(neighbors="replace_one", delta=0.1)]
    used = {name for one in releases for name, _ in making_facts(one)}
    assert {name for name in used if f"{name[0].upper()}{name[1:]}" not in TERMS} == UNEXPLAINED
    text = page_of(releases[0])
    for name in ("Slopes per rank, below and above it", "Prior bonus of +inf", "Target rank", "Gaps in the scores"):
        assert re.search(rf"<dt>{re.escape(name)}</dt><dd.*?</dd><dd class=\"means\">", text, re.DOTALL | re.I), name
    assert "That is no contradiction" in text
    assert "10 records replaced 10.5556" in words_of(text)
    assert "10 records replaced 11.1112" in words_of(page_of(calibration(n_typical=1000)))
