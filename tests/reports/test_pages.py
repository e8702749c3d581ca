"""Pages as text, and cards: complete for everything that is released, small, closed to the outside, and free of data.

`check` states what holds for every page.
"""

import base64
import dataclasses
import hashlib
import html
import math
import re
import warnings
from html.parser import HTMLParser
from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy.stats import beta

import confide
from confide.cli import main
from confide.core import about_facts, load_release, making_section, meaning_of_infinity
from confide.ledger import Cost, Dataset, Group, Ledger, request_digest
from confide.mechanisms import loss_facts
from confide.reports import ledger_page
from confide.reports.example import worked_example
from confide.reports.words import variation
from confide.support import Section, Table, to_markdown
from tests.builders import slow
from tests.calibrations import OPTIONS, calibrations_at, released
from tests.kept import path_of
from tests.refused import Refused, refused
from tests.reports import pages
from tests.reports.pages import HOSTILE, calibration, evaluation, invented

pytestmark = pytest.mark.xdist_group("released")
MOST_BYTES = 60_000


def page_of(release: object, **options: object) -> str:
    """A page, which is checked as every page is."""
    page = confide.report(release, **options).html
    check(page)
    return page


def check(page: str) -> None:
    """A page loads nothing, runs its own script alone, and has no foreign markup and no missing value."""
    assert (page.count("<script"), page.count("<script>")) == (1, 1)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        for body in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
            assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy
    attributes = Attributes()
    attributes.feed(page)
    for tag, name, value in attributes.found:
        assert name != "style"
        assert not name.startswith("on")
        drawn = (tag, name) == ("img", "src") and value.startswith("data:image/svg")
        assert name not in ("src", "href", "action") or value.startswith("#") or drawn
    assert HOSTILE not in page
    assert not {"None", "nan"} & set(words_of(page).split())


class Attributes(HTMLParser):
    """The attributes of all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag, attrs):
        self.found += [(tag, name, value or "") for name, value in attrs]


def certificate_of(text: str) -> str:
    return html.unescape(re.search(r'<pre id="certificate"[^>]*>\n(.*?)</pre>', text, re.DOTALL)[1])


def words_of(text: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


EVERYDAY = ("add_remove", "too few records")


@pytest.mark.parametrize("name", [*EVERYDAY, *slow(sorted(set(OPTIONS) - set(EVERYDAY)))])
def test_every_kind_of_calibration_has_page(name):
    cal = released(name)
    text = page_of(cal)
    assert len(text.encode()) < MOST_BYTES
    assert certificate_of(text) == cal.to_json()
    assert hashlib.sha256(cal.to_json().encode()).hexdigest() in text
    words = words_of(text)
    assert html.unescape(str(cal.privacy)) in words
    excludes = meaning_of_infinity(cal.score).capitalize()
    assert (f"{excludes}. With these records" in words) == math.isinf(cal.threshold)
    assert f"{cal.candidates:,}" in words
    assert "Measured" not in words


def test_one_of_two_thresholds_may_exclude_nothing():
    words = words_of(page_of(calibrations_at("group", {"a": 0.5, "b": math.inf})))
    assert "With these records" not in words


@pytest.mark.long
def test_hostile_names_are_escaped():
    page_of(calibration(), file_name=f"{HOSTILE} 'x.json", evaluation=evaluation(calibration()))


def of_one(**asked):
    if asked.get("evaluation") == "of another":
        asked["evaluation"] = evaluation(calibration(alpha=0.2))
    return confide.report(**{"release": calibration(), **asked})


def of_levels(evaluation):
    return of_one(release=pages.several()["levels"][0], evaluation=evaluation)


def of_a_plan(**asked):
    return confide.report(confide.plan(alpha=0.1, epsilon=1.0, n=1000), **asked)


def of_silos(**asked):
    return confide.report(load_release(path_of("federated-levels")), **asked)


REFUSED = [
    Refused(of_one, {}, {"release": "cal.json"}, "release", kind=confide.errors.InputTypeError),
    Refused(of_one, {}, {"title": ""}, "title", kind=confide.errors.InputError),
    Refused(of_one, {}, {"title": "two\nlines"}, "title", kind=confide.errors.InputError),
    Refused(of_one, {}, {"title": "x" * 201}, "title", kind=confide.errors.InputError),
    Refused(of_one, {}, {"title": 3}, "title", kind=confide.errors.InputTypeError),
    Refused(of_one, {}, {"evaluation": 3}, "evaluation", kind=confide.errors.InputTypeError),
    Refused(of_one, {}, {"answers": ["x"]}, "answers", kind=confide.errors.InputError),
    Refused(of_one, {}, {"evaluation": "of another"}, "evaluation", kind=confide.errors.InputError),
    Refused(of_levels, {}, {"evaluation": "of another"}, "evaluation", kind=confide.errors.InputError),
    Refused(of_a_plan, {}, {"evaluation": "evaluation.json"}, "evaluation", kind=confide.errors.InputError),
    Refused(of_a_plan, {}, {"answers": ["x"]}, "answers", kind=confide.errors.InputError),
    Refused(of_a_plan, {}, {"ledger": "l.db"}, "ledger", kind=confide.errors.InputError),
    Refused(of_silos, {}, {"answers": ["x"]}, "answers", kind=confide.errors.InputError),
]


@pytest.mark.slow(unless=("of_one(title=3)", "of_silos(answers=['x'])"))
@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_invalid_arguments_raise(row):
    row.check()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["levels", "groups", "classes", "sides", "lengths"])
def test_releases_of_several_thresholds_and_their_evaluations_are_shown_by_part(kind, tmp_path):
    release, found = pages.several()[kind]
    release.save(tmp_path / "release.json")
    assert page_of(load_release(tmp_path / "release.json")) == page_of(release)
    text = page_of(release, evaluation=found)
    assert certificate_of(text) == release.to_json()
    words = words_of(text)
    assert str(release.privacy) in words
    assert all(f"{part.threshold:.12g}" in words for part in release.parts.values())
    tables = [table for finding in found.findings.values() for table in finding.tables]
    for table in tables:
        for part in table if table.kind != "end" else ():
            assert f"{part.n} {part.value:.3f} {part.low:.3f} to {part.high:.3f}" in words
    assert text.count("<img") == len(tables)
    assert "Not private. The numbers of this section" in words


@pytest.mark.slow
def test_without_matplotlib_a_page_has_tables_and_says_how_to_get_pictures():
    cal = calibration()
    with mock.patch("confide.reports.page.find_spec", return_value=None):
        text = page_of(cal, evaluation=evaluation(cal))
    assert "<img" not in text
    assert "pip install 'confide[plots]'" in words_of(text)
    assert "Coverage by class" in words_of(text)
    if find_spec("matplotlib"):
        assert "pip install" not in words_of(page_of(cal, evaluation=evaluation(cal)))


@pytest.mark.long
def test_evaluation_must_match_parts_of_release():
    """One that was altered by hand to name another release, or other parts, is refused."""
    kinds = pages.several()
    for kind, (release, _) in kinds.items():
        for other, (_, found) in kinds.items():
            query = dataclasses.replace(found.query, calibration=release.checksum)
            changed = dataclasses.replace(found, query=query)
            if other == kind:
                page_of(release, evaluation=changed)
            else:
                with refused(confide.errors.InputError, "evaluation"):
                    page_of(release, evaluation=changed)


# The same facts everywhere

NAMES = ("renewed", "federated", "groups", "levels", "risk", "pps", "class-shares", "counts-calibration", "sides")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_show_page_and_card_state_the_same_facts(name, capsys):
    release = load_release(path_of(name))
    assert main(["show", str(path_of(name))]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    page, card = words_of(page_of(release)), confide.card(release).text.replace("\\", "")
    made = making_section(release)
    stated = [fact for fact in about_facts(release) if fact[1]]
    for fact, text in (*made.facts, *(fact for part in made.parts for fact in part.facts), *stated):
        line = f"{fact} {' '.join(text.split())}"
        assert line in shown or f"{fact}: {text}" in shown  # the description above the other facts has it
        assert line in page
        assert f"- **{fact}**: {text}" in card
    for unit, loss in loss_facts(release.privacy):
        assert f"{unit} {loss}" in shown
        assert f"{unit} {loss}" in page


# How coverage varies

TITLE = "How coverage varies"


def test_law_without_privacy_is_beta():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, mechanism="none")
    levels = np.linspace(0.8, 1, 50)
    below = cal.coverage_failure()
    assert np.allclose([below(c) for c in levels], beta.cdf(levels, cal.mechanism.rank, 501 - cal.mechanism.rank))
    (row,) = variation({"500": below}, 0.9).tables[0].rows
    assert float(row[4]) == pytest.approx(beta.median(cal.mechanism.rank, 501 - cal.mechanism.rank), abs=6e-5)


def test_page_without_known_law():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, mechanism="opendp-quantile")
    for release in (released("too few records"), cal):
        assert TITLE not in [part.title for part in confide.report(release).section.parts]


# Examples, what was spent, what sets mean

PUBLIC = {"neighbors": "replace_one"}


def release_at(score, threshold):
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
    release = release_at(score, threshold)
    assert release.threshold == threshold
    (table,) = worked_example(release).tables
    answers = [row[1] for row in table.rows]
    assert len(set(answers)) == len(answers) >= 2
    for _, answer, *cells in table.rows:
        members = [name for name, cell in zip("ABCDE", cells, strict=True) if cell.endswith(" ✓")]
        assert answer == ("{" + ", ".join(members) + "}" if members else "the empty set")
        for shown in cells:
            p = float(shown.removesuffix(" ✓"))
            assert score != "lac" or p in (0.0, 1.0) or shown.endswith("✓") == (p >= 1 - threshold)


def test_equal_sets_show_one_record():
    assert [row[1] for row in worked_example(release_at("top_k", 2.0)).tables[0].rows] == ["{A, B}"]


def test_spending_of_data(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=4.0, by="trial office")
    known, scores = {"ledger": ledger, "dataset": "patients"}, np.random.default_rng(0).random(3000)
    confide.calibrate(scores, 0.2, 0.75, score="lac", **known)
    released = confide.calibrate(scores, 0.1, 0.5, score="lac", **known)
    confide.calibrate(scores, 0.05, 0.25, score="lac", **known)
    levels = confide.calibrate(scores, [0.3, 0.15], 1.0, score="lac", **known)
    words = words_of(page_of(released, ledger=ledger))
    assert "Before this release With it By now epsilon spent, the losses added up 0.75 1.25 2.5 limit 4 4 4" in words
    assert "left for one more release 3.25 2.75 1.5 releases 1 release 2 releases 4 releases" in words
    several = words_of(page_of(levels, ledger=tmp_path / "budget.db"))
    assert "epsilon spent, the losses added up 1.5 2.5 2.5" in several
    assert "What the data have spent" not in words_of(page_of(released))
    with refused(confide.errors.InputError, "ledger"):
        page_of(calibration(), ledger=ledger)


SAMPLES = (
    "calibration", "calibration-delta", "calibration-infinite", "class-shares",
    "pps", "levels", "groups", "sides", "risk", "federated", "federated-levels",
)  # fmt: skip


def read(card):
    """The metadata of a card, and its text."""
    yaml = pytest.importorskip("yaml", reason="reads the metadata of model cards")
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


@pytest.mark.slow(unless=("calibration-delta", "class-shares", "federated-levels", "federated", "risk", "sides"))
@pytest.mark.parametrize("name", SAMPLES)
def test_metadata_equal_the_release(name):
    released = load_release(path_of(name))
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


@pytest.mark.slow
@given(st.text(min_size=1), st.text(min_size=1))
@example("1", "12)")
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
    about = {"model": HOSTILE, "data": HOSTILE}
    released = confide.calibrate(confide.lac_score(*invented()), 0.1, 1.0, score="lac", about=about)
    card = confide.card(released, evaluation=evaluation(released))
    index, text = read(card)
    assert index["model-index"][0]["name"] == HOSTILE
    assert "<" not in re.sub(r"\\<", "", text)
    assert "<script>alert" not in card.html


def digest(*content):
    return request_digest({"asked": [str(item) for item in content]})


@pytest.fixture
def ledger(tmp_path):
    """A limit, two who charge, groups, an interrupted run, a release without privacy."""
    place = tmp_path / "budget.db"
    Ledger(place).set_limit("patients", (4.0, 1e-6))
    for k in range(4):
        one = Ledger(place, by=HOSTILE if k == 3 else "radiology")
        token = one.charge("patients", Cost(0.5, "add_remove", "slopes", 0.5**2 / 8), digest(k))
        if k:
            one.attach(token, f"RELEASE {k}", b"COUNTS")
    made = Ledger(place)
    for cell in ("north", "south"):
        group = Group("region", cell)
        made.charge(Dataset("patients", group), Cost(0.25, "add_remove", "slopes", None, group), digest(cell))
    made.set_limit("cardiology", 3.0)
    made.charge("open", Cost(math.inf, "add_remove", "none"), digest("open"))
    made.charge(HOSTILE, Cost(12.0, "replace_one", "evaluation by laplace"), digest("hostile"))
    return made


def test_page_contains_no_releases_fingerprints_or_key(ledger):
    html = ledger_page(ledger).html
    entries = [entry for account in ledger.accounts().values() for entry in account.entries]
    secrets = [
        "RELEASE",
        "COUNTS",
        ledger.look_up([Dataset("patients")], []).key,
        *(one.fingerprint for one in entries),
        entries[0].token,
    ]
    for secret in secrets:
        assert secret is None or secret not in html
    assert html.count("<script") == 1
    assert words_of(ledger_page(ledger).html).count("Not private. One release was without privacy") == 1
    with refused(confide.errors.InputError, "dp_delta"):
        ledger_page(ledger, dp_delta=1.0)
