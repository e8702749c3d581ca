"""The pages as text: complete for everything that is released, small, closed to the outside, and free of data."""

import base64
import dataclasses
import hashlib
import html
import math
import re
from unittest import mock

import pytest

import confide
from confide.core import load_release, meaning_of_infinity
from confide.support import describe
from tests.builders import slow
from tests.calibrations import OPTIONS, released
from tests.refused import Refused, refused
from tests.reports import pages
from tests.reports.pages import HOSTILE, calibration, evaluation

pytestmark = pytest.mark.xdist_group("released")
MOST_BYTES = 60_000


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
    assert not {"None", "nan", "Measured"} & set(words.split())


@pytest.mark.parametrize(
    ("options", "theorem"),
    [
        ({}, "docs/theory-one-number.md, Theorem H1"),
        ({"neighbors": "replace_one"}, "docs/theory.md, Theorem C2a or docs/theory-one-number.md, Theorem T1a"),
    ],
)
def test_page_names_certificate(options, theorem):
    """A reader who checks the promise reads which theorem it rests on."""
    words = words_of(page_of(calibration(**options)))
    assert f"{theorem}; privacy by docs/theory.md, Theorem P1" in words


def test_hostile_names_are_escaped(tmp_path):
    cal = calibration()
    found = evaluation(cal)
    text = page_of(cal, file_name=f"{HOSTILE} 'x.json", evaluation=found)
    assert HOSTILE not in text
    assert not re.search("<img (?!src=.data:image/svg)", text)
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
    outside = re.sub(r"<(script|style)\b.*?</\1>|<pre.*?</pre>|<img.*?>", "", text, flags=re.DOTALL)
    assert not re.search(r"""\s(src|href|action)=["']?(?!["']?#)""", outside)
    assert not re.search(r"""\son\w+=|style=""", outside)


def of_one(**asked):
    if asked.get("evaluation") == "of another":
        asked["evaluation"] = evaluation(calibration(alpha=0.2))
    return confide.report(**{"release": calibration(), **asked})


def of_levels(evaluation):
    return of_one(release=pages.several()["levels"][0], evaluation=evaluation)


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
def test_releases_of_several_thresholds_and_their_evaluations_are_shown_by_part(kind, tmp_path):
    release, found = pages.several()[kind]
    release.save(tmp_path / "release.json")
    assert page_of(load_release(tmp_path / "release.json")) == page_of(release)
    text = page_of(release, evaluation=found)
    assert certificate_of(text) == release.to_json()
    assert HOSTILE not in text
    words = words_of(text)
    assert str(release.privacy) in words
    assert all(f"{part.threshold:.12g}" in words for part in release.parts.values())
    tables = [table for finding in found.findings.values() for table in finding.tables]
    for table in tables:
        for part in table if table.kind != "end" else ():
            assert f"{part.n} {part.value:.3f} {part.low:.3f} to {part.high:.3f}" in words
    assert text.count("<img") == len(tables)
    assert "Not private. The numbers of this section" in words
    shown = [finding for finding in found.findings.values() if finding.examples]
    assert words.count("Record Set True label It is") == len(shown)
    assert "None" not in words


def test_without_matplotlib_a_page_has_tables_and_says_how_to_get_pictures():
    cal = calibration()
    with mock.patch("confide.reports.page.find_spec", return_value=None):
        text = page_of(cal, evaluation=evaluation(cal))
    assert "<img" not in text
    assert "pip install 'confide[plots]'" in words_of(text)
    assert "Coverage by class" in words_of(text)
    assert "pip install" not in words_of(page_of(cal, evaluation=evaluation(cal)))


def test_expected_coverage_is_below_its_bound_and_coarse_candidates_are_no_price_of_privacy():
    coarse = confide.Candidates.unit(20)
    facts = dict(describe(confide.plan(alpha=0.1, epsilon=1.0, n=409, candidates=coarse)).parts[0].facts)
    assert float(facts["expected coverage"].split(",")[0]) <= float(facts["coverage at most"].split()[0])
    assert "because the candidates lie apart, and not for privacy" in facts["beyond the request"]


@pytest.mark.slow
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
                with refused(confide.InputError, "evaluation"):
                    page_of(release, evaluation=changed)
