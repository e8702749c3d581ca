"""Dossiers: every kind of evidence appears with its file and digest, and disappears without the file."""

import csv
import hashlib
import re
from importlib.resources import files as resources

import numpy as np
import pytest
from markdown_it import MarkdownIt

import confide
from confide import federated
from confide.federated.silo_report import coverage_in_silo
from confide.reports.dossier import EVIDENCE, NOT_SHOWN, REQUIREMENTS
from tests.federated.helpers import Federation
from tests.golden import TESTS
from tests.refused import refused
from tests.reports.pages import ABOUT, HOSTILE

HOSPITALS = ("cleveland", "budapest", "zurich", "long-beach")
ROWS = list(csv.DictReader(resources("confide.reports").joinpath(REQUIREMENTS).read_text("utf-8").splitlines()))


def table_rows(text):
    """Rows of all tables of a dossier, as a reader of Markdown sees them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [tokens[i + 1].content.replace("\\", "") for i, token in enumerate(tokens) if token.type == "td_open"]
    return [tuple(cells[i : i + 4]) for i in range(0, len(cells), 4)]


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory):
    """A federation of four hospitals: its release, plan, evaluation, monitor, schedule, and a report of each."""
    folder, rng = tmp_path_factory.mktemp("hospitals"), np.random.default_rng(0)
    silos = Federation(folder, [rng.random(200) for _ in HOSPITALS], names=HOSPITALS)
    plan = silos.plan(0.1, 2.0, method="secure-sum", about={key: ABOUT[key] for key in ("purpose", "data", "model")})
    released = federated.aggregate(plan, silos.answers(plan), keys=silos.coordinator)
    (folder / "plan.json").write_text(plan, encoding="utf-8")
    released.save(folder / "released.json")
    confide.evaluate(released, scores=rng.random(2000), epsilon=1.0).save(folder / "evaluation.json")
    watch = confide.Watch.start(released, epsilon=1.0, batch=500, looks=12)
    watch.look("2026-01", [460, 40]).save(folder / "monitor.json")
    confide.budget_plan(4.0, releases=2, looks=12, looks_per_person=2).save(folder / "schedule.json")
    for name in HOSPITALS:
        coverage_in_silo(name, rng.random(200), released.threshold, epsilon=1.0).save(folder / f"{name}.json")
    names = ("released", "plan", "evaluation", "monitor", "schedule", *HOSPITALS)
    return [folder / f"{name}.json" for name in names]


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Three releases of a chain, the last with thresholds for its groups, and an evaluation of each."""
    folder, rng = tmp_path_factory.mktemp("chain"), np.random.default_rng(1)
    groups = ["a", "b"]
    of = np.array(groups * 1500)
    first = confide.calibrate_groups(rng.random(3000), of, groups, 0.1, 1.0, score="lac", about={"date": "2026-01-05"})
    second = confide.recalibrate(first, rng.random(3000), groups=of)
    for place, one in enumerate((second, first)):
        one.save(folder / f"release-{place}.json")
        found = confide.evaluate(one, scores=rng.random(3000), groups=of)
        (folder / f"evaluation-{place}.json").write_text(found.to_json(), encoding="utf-8")
    return [folder / name for name in ("release-0.json", "release-1.json", "evaluation-0.json", "evaluation-1.json")]


def test_every_requirement_names_known_evidence():
    assert {name for row in ROWS for name in row["evidence"].split()} == set(EVIDENCE)
    assert all(row[key].strip() for row in ROWS for key in ("law", "place", "requirement"))
    laws = list(dict.fromkeys(row["law"] for row in ROWS))
    assert [law.split(",")[0] for law in laws] == ["EU AI Act", "EU AI Act", "FDA"]
    assert len({(row["law"], row["place"], row["requirement"]) for row in ROWS}) == len(ROWS)


def test_every_requirement_has_a_row_and_files_their_digests(hospitals):
    text = confide.dossier(hospitals, title="Chest pain").text
    assert "# Chest pain" in text
    assert "not legal advice" in text
    rows = table_rows(text)
    assert [row[:2] for row in rows if row[1]] == [(row["place"], row["requirement"]) for row in ROWS]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in hospitals}
    for name, digest in digests.items():
        assert f"### {name}" in text
        assert text.count(f"**SHA-256**: {digest}") == 1
        assert any(row[3] == f"{name}, {digest[:16]}..." for row in rows), name
    named = {row[3].split(",")[0] for row in rows if row[3]}
    assert named == set(digests)
    assert all((row[2] == NOT_SHOWN) == (row[3] == "") for row in rows)


def test_evidence_disappears_with_its_file(hospitals):
    whole = table_rows(confide.dossier(hospitals).text)
    for path in hospitals[1:]:
        left = table_rows(confide.dossier([one for one in hospitals if one != path]).text)
        others = [row[2:] for row in whole if row[3] and not row[3].startswith(f"{path.name},")]
        assert [row[2:] for row in left if row[3]] == others
        assert len(others) < sum(bool(row[3]) for row in whole)
    alone = table_rows(confide.dossier(hospitals[:1]).text)
    shown = {row[:2] for row in alone if row[2] != NOT_SHOWN and row[1]}
    assert ("72(1)", "a documented monitoring system that fits the risks") not in shown
    assert ("2(b)", "expected output and its quality") in shown


def test_the_four_hospitals_show_this(hospitals):
    rows = {(row["law"][:3], row["place"], row["requirement"]): row["evidence"].split() for row in ROWS}
    text = confide.dossier(hospitals).text
    found = table_rows(text)
    assert ("6", "changes by the provider over the lifecycle", NOT_SHOWN, "") in found
    assert sum(row[2].startswith(f"{name}: coverage") for row in found for name in HOSPITALS) == 4 * sum(
        "silos" in evidence for evidence in rows.values()
    )
    assert any("silos: 4" in row[2] for row in found)
    assert any(row[2].startswith("a signed file") for row in found)
    assert any("looks: 1, the last '2026-01'" in row[2] for row in found)


@pytest.mark.slow
def test_a_chain_is_evidence_of_changes(chain):
    rows = table_rows(confide.dossier(chain).text)
    changes = [row for row in rows if row[0] == "6"]
    assert changes[0][2].startswith("2 releases, all together: epsilon 2 for a person who is in each release")
    assert changes[1][2].startswith("an earlier release of the chain")
    assert {row[3].split(",")[0] for row in changes} == {"release-0.json", "release-1.json"}
    groups = [row for row in rows if row[2].startswith("group a ")]
    assert {row[3].split(",")[0] for row in groups} == {"evaluation-0.json", "evaluation-1.json"}
    assert any(row[2] == "a threshold for each group" for row in rows)


@pytest.mark.slow
def test_files_about_another_release_are_refused(hospitals, chain, tmp_path):
    released, plan, evaluated, monitor, schedule, *reports = hospitals
    for other in (plan, evaluated, monitor, reports[0]):
        with refused(confide.InputError, "files"):
            confide.dossier([chain[0], other])
    with refused(confide.InputError, "files"):
        confide.dossier([released, chain[0]])
    with refused(confide.InputError, "files"):
        confide.dossier([chain[1], chain[0]])  # the older release first
    confide.dossier([chain[0], schedule])


def test_files_that_are_no_evidence_are_refused(hospitals, tmp_path):
    (tmp_path / "notes.txt").write_text("notes", encoding="utf-8")
    for wrong in ([hospitals[1]], [hospitals[0], tmp_path / "notes.txt"], [tmp_path / "missing.json"]):
        with refused(confide.InputError, "files"):
            confide.dossier(wrong)
    for wrong in ([], str(hospitals[0])):
        with refused(confide.InputTypeError, "files"):
            confide.dossier(wrong)


def test_an_altered_file_is_refused(hospitals, tmp_path):
    text = hospitals[0].read_text(encoding="utf-8")
    threshold = re.search(r'"threshold": ([0-9.]+)', text)
    (tmp_path / "released.json").write_text(text.replace(threshold[0], '"threshold": 0.01'), encoding="utf-8")
    with pytest.raises(confide.FormatError):
        confide.dossier([tmp_path / "released.json"])


def test_the_page_has_the_same_rows(hospitals):
    dossier = confide.dossier(hospitals)
    html = dossier.page().html
    assert html.count("not shown by these files</td>") == dossier.text.count(f"| {NOT_SHOWN} |")
    assert "default-src &#39;none&#39;; script-src &#39;none&#39;" in html


def test_hostile_names_stay_text(tmp_path):
    about = {"model": HOSTILE, "purpose": f"a | b | {HOSTILE}"}
    confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac", about=about).save(tmp_path / "r.json")
    dossier = confide.dossier([tmp_path / "r.json"])
    assert len(table_rows(dossier.text)[0]) == 4
    assert "a | b |" in table_rows(dossier.text)[0][2]
    assert "<script>" not in dossier.page().html


def test_kept_files_of_a_federation_are_read():
    folder = TESTS / "federated/samples/0.2"
    text = confide.dossier(
        [folder / "levels/released.json", folder / "levels/plan.json", folder / "silo-report.json"]
    ).text
    assert any("method: secure-sum" in row[2] for row in table_rows(text))
