"""The pages as text: complete for everything that is released, small, closed to the outside, and free of data."""

import base64
import dataclasses
import hashlib
import html
import json
import math
import re
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

import confide
from confide.evaluation import (
    Evaluation,
    LevelEvaluation,
    evaluate_intervals,
    evaluate_scores,
    evaluation_from_counts,
    fingerprint,
    read_evaluation,
)
from confide.releases import Release, load_release, making_facts, meaning_of_infinity
from confide.reports.measurements import evaluation_sections
from confide.reports.page import Page
from confide.reports.plan_page import calibrate_command
from confide.reports.protection import silos
from confide.support import Dot
from tests.builders import slow
from tests.calibrations import OPTIONS, fix_noisy_number, released
from tests.refused import Refused, refused
from tests.reports import pages
from tests.reports.pages import HOSTILE, calibration, evaluation, federation

pytestmark = pytest.mark.xdist_group("released")
MOST_BYTES = 120_000


def page_of(release: object, **options: object) -> str:
    return confide.report(release, **options).html


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
    assert "None" not in words
    assert "nan" not in words.lower().split()


@pytest.mark.slow
@pytest.mark.parametrize(("options", "theorem"), [({}, "T1b"), *slow([({"neighbors": "replace_one"}, "T1a")])])
def test_page_names_certificate(options, theorem):
    """A reader who checks the promise reads which certificate it rests on."""
    cal = calibration(**options)
    assert cal.guarantee.certificate == "two-sided"
    words = words_of(page_of(cal))
    assert "certified coverage 0.9 (marginal, two-sided certificate)" in words
    assert f"docs/theory-two-sided.md, Theorem {theorem}; privacy by docs/theory.md, Theorem P1" in words
    sharp = dataclasses.replace(cal.guarantee, certificate=None)
    rows = dict(making_facts(dataclasses.replace(cal, guarantee=sharp)))
    assert rows["certified coverage"] == "0.9 (marginal)"
    assert rows["certified by"] == f"docs/theory.md, Theorem C2{theorem[-1]}; privacy by Theorem P1"


METHODS = {
    "pps": {"epsilon": 4.0, "neighbors": "replace_one"},
    "pps-laplace": {"epsilon": 1.0, "neighbors": "replace_one"},
    "noisy-histogram": {"epsilon": 1.0},
    "opendp-quantile": {"epsilon": 1.0},
    "none": {},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the threshold is:confide.CoverageWarning")
@pytest.mark.parametrize("method", ["pps", "none", *slow(["pps-laplace", "noisy-histogram", "opendp-quantile"])])
def test_pages_of_published_methods_state_missing_guarantees(method):
    scores, candidates = np.linspace(0, 1, 1000), confide.Candidates.unit(100)
    cal = confide.calibrate(scores, 0.1, score="lac", candidates=candidates, mechanism=method, **METHODS[method])
    words = words_of(page_of(cal))
    assert method in words
    assert ("No coverage is promised" in words) == (method == "opendp-quantile")
    assert ("Not private. The threshold is a function" in words) == (method == "none")
    assert ("plans for the library’s own mechanism" in words) == (method != "slopes")
    assert ("exact for continuous scores" in words) == (method == "none")


@lru_cache
def several() -> dict[str, object]:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(4000), rng.choice(["north", HOSTILE], 4000)
    p = rng.random((4000, 6))
    return {
        "levels": confide.calibrate_levels(scores, [0.2, 0.1, 0.05], epsilon=1.0, score="lac"),
        "groups": confide.calibrate_groups(scores, groups, ["north", HOSTILE], 0.1, 1.0, score="lac"),
        "sides": confide.calibrate_sides(np.tile([-1.0, 1.0], (4000, 1)), rng.normal(size=4000), 0.1, 1.0),
        "risk": confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["levels", "groups", "sides", "risk"])
def test_releases_with_several_thresholds_have_page(kind, tmp_path):
    release = several()[kind]
    release.save(tmp_path / "release.json")
    text = page_of(release)
    assert certificate_of(text) == release.to_json()
    assert page_of(load_release(tmp_path / "release.json")) == text
    assert HOSTILE not in text
    words = words_of(text)
    for part in release.parts.values() if kind in ("levels", "groups") else ():
        assert f"{part.threshold:.12g}" in words
    assert str(release.privacy) in words
    assert text.count('<div class="law">') == {"levels": 3, "groups": 1, "sides": 1, "risk": 1}[kind]
    assert len(text.encode()) < MOST_BYTES


@pytest.mark.slow
def test_each_side_has_its_promise_and_score():
    words = words_of(page_of(several()["sides"])).replace("\xa0", " ")
    for side in ("below", "above"):
        assert f"the true value is not {side} the interval for at least 95 % of new records" in words
    assert "score “cqr_low” and “cqr_high”" in words
    assert "longer intervals" in words
    assert "in the set" not in words
    assert "larger sets" not in words


@pytest.mark.slow
def test_risk_control_is_not_called_coverage():
    text = page_of(several()["risk"])
    words = words_of(text)
    assert "On average, at most 10 % of a record's true labels are missed." in words
    assert "Of a hundred new records" not in words
    assert "A label is in the set if the model gives it a probability of at least" in words


def test_many_classes_are_drawn_in_part_and_listed_in_full():
    cal, k = calibration(), 200
    by_class = np.tile([10, 9, 1000], (k, 1))
    by_class[17, 1] = 0
    by_size = np.tile([10, 9], (k + 1, 1))
    by_size[0] = (0, 0)
    by_size[100, 1] = 0
    found = evaluation_from_counts(cal, [f"class {i}" for i in range(k)], by_class, by_size)
    text = page_of(cal, evaluation=found)
    (block,) = evaluation_sections(found, cal)
    sizes, frequent, classes = (part.chart for part in block.parts)
    assert len(classes.names) == len(frequent.names) == 30
    assert classes.names[0] == "class 17"
    assert len(sizes.marks) == k
    words = words_of(text)
    assert "The 30 least covered of 200 classes" in words
    assert "The 30 most frequent of 200 sizes" in words
    assert "class 199 10 0.900" in words


@pytest.mark.slow
def test_page_depends_on_release_alone(tmp_path):
    """Written in one process and read in another, the calibration gives the same page, byte by byte."""
    cal = calibration()
    cal.save(tmp_path / "cal.json")
    assert page_of(confide.Calibration.load(tmp_path / "cal.json")) == page_of(cal)


def test_a_title_is_escaped_and_checked():
    text = page_of(calibration(), title=HOSTILE)
    assert HOSTILE not in text
    assert html.escape(HOSTILE, quote=False) in text.replace("&#39;", "'").replace("&#34;", '"')


def test_hostile_names_are_escaped(tmp_path):
    cal = calibration()
    found = evaluation(cal)
    text = page_of(cal, file_name=f"{HOSTILE} 'x.json", evaluation=found)
    assert HOSTILE not in text
    assert "<img" not in text
    assert text.count("<script") == 1


def test_page_contains_only_scripts_and_styles_of_policy():
    text = page_of(calibration())
    assert text.count("<script>") == 1
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        for body in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL):
            assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy
    outside = re.sub(r"<(script|style)\b.*?</\1>|<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert not re.search(r"""\s(src|href|action)=["']?(?!["']?#)""", outside)
    assert not re.search(r"""\son\w+=|style=""", outside)


def test_page_is_saved_once_and_has_short_repr(tmp_path):
    made = confide.report(calibration(), title=HOSTILE)
    assert made.save(tmp_path / "report.html") == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == made.html
    with pytest.raises(confide.InputError):
        made.save(tmp_path / "report.html")
    made.save(str(tmp_path / "report.html"), overwrite=True)
    assert len(repr(made)) == len(str(made)) < 200
    assert made == Page(made.title, made.html)


def test_notebook_shows_page_in_frame():
    made = confide.report(calibration(), title=HOSTILE)
    shown = made._repr_html_()
    assert HOSTILE not in shown
    tags = re.findall(r"<[^>]*>", shown)
    assert len(tags) == 2
    assert tags[1] == "</iframe>"
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == made.html
    assert "allow-same-origin" not in shown


def of_one(**asked):
    if asked.get("evaluation") == "of another":
        asked["evaluation"] = evaluation(calibration(alpha=0.2))
    return confide.report(**{"release": calibration(), **asked})


def of_levels(evaluation):
    return of_one(release=several()["levels"], evaluation=evaluation)


def of_a_plan(**asked):
    return confide.report(confide.plan(alpha=0.1, epsilon=1.0, n=1000), **asked)


REFUSED = [
    Refused(of_one, {}, {"release": "cal.json"}, "release", kind=confide.InputTypeError),
    Refused(of_one, {}, {"title": ""}, "title", kind=confide.InputError),
    Refused(of_one, {}, {"title": "two\nlines"}, "title", kind=confide.InputError),
    Refused(of_one, {}, {"title": "x" * 201}, "title", kind=confide.InputError),
    Refused(of_one, {}, {"title": 3}, "title", kind=confide.InputTypeError),
    Refused(of_one, {}, {"evaluation": 3}, "evaluation", kind=confide.InputTypeError),
    Refused(of_one, {}, {"answers": ["x"]}, "answers", kind=confide.InputError),
    Refused(of_one, {}, {"evaluation": "of another"}, "evaluation", kind=confide.InputError),
    Refused(of_levels, {}, {"evaluation": "of another"}, "evaluation", kind=confide.InputError),
    Refused(of_a_plan, {}, {"evaluation": "evaluation.json"}, "evaluation", kind=confide.InputError),
    Refused(of_a_plan, {}, {"answers": ["x"]}, "answers", kind=confide.InputError),
    Refused(of_a_plan, {}, {"ledger": "l.db"}, "ledger", kind=confide.InputError),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_invalid_arguments_raise(row):
    row.check()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["levels", "groups", "classes", "sides", "lengths"])
def test_evaluations_are_shown_by_part(kind):
    release, found = pages.several()[kind]
    text = page_of(release, evaluation=found)
    assert HOSTILE not in text
    words = words_of(text)
    single = isinstance(found, Evaluation)
    blocks = [found] if single else list(found.levels.values())
    sections = evaluation_sections(found, release)
    if not single:
        ticks = [mark.at[0] for mark in sections[0].chart.marks if isinstance(mark, Dot) and mark.tick]
        assert ticks == [one.promised for one in blocks]
    for section, one in zip(sections[-len(blocks) :], blocks, strict=True):
        charts = {part.title: part.chart for part in section.parts}
        own = "Coverage by end of the interval" if one.by == "side" else "Coverage by group"
        for title, parts in ((own, one.groups), ("Coverage by class", one.classes)):
            if not parts:
                continue
            by_name = {part.name: part for part in parts}
            chart = charts[title]
            assert sorted(chart.names) == sorted(by_name)
            for mark in chart.marks:
                if not isinstance(mark, Dot):
                    continue
                part = by_name[chart.names[mark.at[1]]]
                c = part.coverage
                if mark.tick:
                    assert mark.at[0] == part.promised
                else:
                    assert (mark.at[0], mark.x) == (c.value, (c.low, c.high))
                assert f"{part.n:,} {c.value:.3f} {c.low:.3f} {c.high:.3f}" in words
        assert (one.by is None) == ("Upright: the promise of each of them" not in words)
    assert "Not private. The numbers of this section" in words
    assert words.count("contains the true label") + words.count("misses the true label") == sum(
        len(b.examples) for b in blocks
    )
    assert "None" not in words


@pytest.mark.slow
def test_many_levels_and_groups_are_drawn_in_part():
    scores, names = np.linspace(0, 1, 6000), [f"ward {i}" for i in range(60)]
    levels = confide.calibrate_levels(scores, [Fraction(k, 20) for k in range(1, 9)], epsilon=20.0, score="lac")
    found = evaluate_scores(levels, scores)
    text = page_of(levels, evaluation=found)
    first, *blocks = evaluation_sections(found, levels)
    assert (len(first.chart.names), len(blocks)) == (8, 6)
    assert "2 more levels are in the evaluation file" in words_of(text)
    place = np.arange(6000) % 60
    groups = confide.calibrate_groups(scores, [names[i] for i in place], names, 0.2, 5.0, score="lac")
    measured = evaluate_scores(groups, scores, groups=[names[i] for i in place])
    chart = evaluation_sections(measured, groups)[0].parts[0].chart
    assert len(chart.names) == 30
    worst = min(part.coverage.value for part in measured.groups)
    assert next(mark for mark in chart.marks if isinstance(mark, Dot) and not mark.tick).at[0] == worst
    assert "The 30 least covered of 60 groups" in words_of(page_of(groups, evaluation=measured))


@pytest.mark.slow
def test_evaluation_must_match_parts_of_release():
    """One that was altered by hand to name another release, or other parts, is refused."""
    kinds = pages.several()
    for kind, (release, _) in kinds.items():
        for other, (_, found) in kinds.items():
            changed = dataclasses.replace(found, calibration=fingerprint(release))
            if other == kind:
                page_of(release, evaluation=changed)
            elif {kind, other} != {"groups", "lengths"}:
                with refused(confide.InputError, "evaluation"):
                    page_of(release, evaluation=changed)
    levels, found = kinds["levels"]
    fewer = LevelEvaluation(found.calibration, dict(list(found.levels.items())[:2]))
    with refused(confide.InputError, "evaluation"):
        page_of(levels, evaluation=fewer)


@pytest.mark.slow
def test_risk_control_is_shown_as_loss():
    released = several()["risk"]
    found = evaluate_scores(released, np.linspace(0, 1, 1000))
    words = words_of(page_of(released, evaluation=found))
    assert f"loss 'false_negative_rate' {1 - found.coverage.value:.3f} (95 % interval" in words
    sides, quantiles = several()["sides"], np.tile([-1.0, 1.0], (50, 1))
    text = page_of(sides, evaluation=evaluate_intervals(sides, quantiles, np.zeros(50)))
    assert "Coverage by end of the interval" in words_of(text)


@pytest.mark.slow
def test_page_marks_evaluation_as_not_private():
    cal = calibration()
    plain, measured = page_of(cal), page_of(cal, evaluation=evaluation(cal))
    assert "Measured on labelled records" not in words_of(plain)
    assert "coverage by" not in words_of(plain).lower()
    assert "Not private. The numbers of this section" in words_of(measured)
    assert "not covered by ε" in words_of(measured)


@pytest.mark.slow
def test_federated_page_shows_silos(tmp_path):
    joined, more = federation(tmp_path)
    text = page_of(joined, **more)
    words = words_of(text)
    assert "4 of 5 silos answered" in words
    assert "silo 4 600" in words
    assert "did not answer" in words
    found = silos(joined, more["answers"])
    dots = [mark.at[0] for mark in found["chart"].marks if isinstance(mark, Dot)]
    assert sorted(dots)[joined.k - 1] == joined.threshold
    bare = page_of(joined)
    assert "The answers" not in words_of(bare)
    assert page_of(Release.from_json(joined.to_json())) == bare
    with refused(confide.InputError, "answers"):
        page_of(calibration(), answers=more["answers"])
    (tmp_path / "other").mkdir()
    _, others = federation(tmp_path / "other")
    with pytest.raises(confide.InputError):
        page_of(joined, answers=others["answers"])


@pytest.mark.slow
def test_command_of_plan_makes_planned_calibration(tmp_path, monkeypatch, capsys):
    import shlex

    import pyarrow
    from pyarrow import parquet

    from confide.cli import main

    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 2], size=2000)
    table = pyarrow.table(
        {"p_yes": p[:, 0], "p_no": p[:, 1], "diagnosis": np.where(rng.random(2000) < p[:, 0], "yes", "no")}
    )
    parquet.write_table(table, tmp_path / "records.parquet")
    monkeypatch.chdir(tmp_path)
    fix_noisy_number(monkeypatch, 2000)
    for options in (
        {"neighbors": "replace_one"},
        {"delta": 0.1, "n_min": 100},
        {"alpha": Fraction(1, 3), "records_per_person": 2},
    ):
        planned = confide.plan(**{"alpha": 0.1, "epsilon": 0.5, "n": 2000, **options})
        assert main([*shlex.split(calibrate_command(planned))[1:], "--force"]) == 0
        made = confide.Calibration.load("calibration.json")
        assert made.mechanism == planned.mechanism
        assert made.privacy == planned.privacy


@pytest.mark.slow
def test_plan_with_too_few_records_has_page():
    words = words_of(page_of(confide.plan(alpha=0.01, epsilon=0.1, n=50, neighbors="replace_one")))
    assert "Nothing would be excluded from any set" in words


def test_evaluations_round_trip_and_damage_raises():
    found = evaluation(calibration())
    assert read_evaluation(found.to_json()) == found
    content = json.loads(found.to_json())
    assert content["private"] is False
    damages = [
        {"kind": "other"},
        {"schema": 2},
        {"unknown": 1},
        {"promised": 2.0},
        {"examples": [{"set": [1], "truth": "a"}]},
        {"coverage": {**content["coverage"], "covered": content["coverage"]["n"] + 1}},
        {"coverage": {**content["coverage"], "n": -1}},
        {"coverage": 1},
        {"classes": content["classes"][:1]},
        {"sizes": [{**content["sizes"][0], "covered": 10**9}]},
        {"classes": [3]},
        {"mean_size": "many"},
    ]
    for damage in damages:
        with pytest.raises(confide.FormatError):
            read_evaluation(json.dumps({**content, **damage}))
    for text in ("", "[]", "{", "[" * 100_000):
        with pytest.raises(confide.FormatError):
            read_evaluation(text)
    lying = {**content, "mean_size": 0.1, "coverage": {**content["coverage"], "value": 1.0, "low": 1.0}}
    assert read_evaluation(json.dumps(lying)) == found
