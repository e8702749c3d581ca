"""The page of a ledger: its figures are the ledger's, nothing else of it leaves, and it loads and runs nothing."""

import json
import math
import re
from fractions import Fraction
from html import unescape

import pytest

import confide
from confide.errors import InputError
from confide.ledger import Cost, Dataset, Group, Ledger, request_digest
from confide.ledger.composition import largest_sum
from confide.reports import ledger_page
from confide.reports.ledger_page import MOST_CHARGES, running
from tests.refused import refused
from tests.reports.browser import Opened, chromium, needs_chromium

HOSTILE = "<script>alert(1)</script> & “co”"


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


def words(page):
    """The text of a page, without its styles."""
    text = re.sub(r"<style>.*?</style>", "", page.html, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def test_spent_and_remaining_budget(ledger):
    said = words(ledger_page(ledger, title="Budget"))
    account = ledger.account("patients")
    for row in (
        "patients 2.25 4 at delta 1e-06 1.75 6",  # spent, limit, left, releases
        "calibration by slopes radiology 3 1.5",
        f"calibration by slopes {HOSTILE} 1 0.5",
        "calibration by slopes not kept 2 0.5",
        "evaluation by laplace not kept 1 12",
        "cardiology 0 3 3 0 never",
        "open +inf (not private) none unlimited",
        "56.25\u00a0% of the limit is spent".replace("\u00a0", " "),
        "by a factor of at most 9.49",  # e^2.25 = 9.488
        f"Hash of the last record {ledger.hashes()[-1]}",
        "left for one more release 1.75",
        "region = north",
    ):
        assert row in said, row
    for bound in account.spent(1e-6).bounds:
        assert bound.derivation in said


def test_warnings_of_data_sets(ledger):
    said = words(ledger_page(ledger))
    for remark in (
        "Charged without a release. 3 releases were charged and never stored",
        "Not private. One release was without privacy",
        "No limit. Every request is charged. confide ledger limit sets one.",
        "Hardly private. The total privacy loss is practically no protection",
    ):
        assert said.count(remark) == 1
    assert "Nothing is left" not in said
    assert "To look at 3 data sets need attention" in said
    assert "`" not in said
    epsilons = [bound.epsilon for bound in ledger.account("patients").spent(1e-6).bounds]
    assert len(epsilons) > 1
    assert "Each rule bounds the same loss, and all bounds hold. The smallest ε counts" in said
    ledger.set_limit("patients", 2.0)
    assert "Nothing is left. The ledger rejects every further release." in words(
        ledger_page(ledger, dataset="patients")
    )


def test_one_data_set_without_persons(ledger):
    page = ledger_page(ledger, dataset="patients", who=False, dp_delta=0)
    said = words(page)
    assert "cardiology" not in said
    assert "radiology" not in said
    assert HOSTILE not in said
    assert "calibration by slopes 6 2.5" in said
    assert said.count("zCDP") == 0  # pure epsilon alone
    with refused(InputError, "dataset"):
        ledger_page(ledger, dataset="others")
    with refused(InputError, "dp_delta"):
        ledger_page(ledger, dp_delta=1.0)


def test_page_contains_no_releases_fingerprints_or_key(ledger):
    html = ledger_page(ledger).html
    entries = [entry for account in ledger.accounts().values() for entry in account.entries]
    for secret in (
        "RELEASE",
        "COUNTS",
        ledger.snapshot().key,
        *(one.fingerprint for one in entries),
        entries[0].token,
    ):
        assert secret is None or secret not in html
    assert "<script" not in html
    assert "script-src 'none'" in unescape(html)


def test_empty_ledger_has_page(tmp_path):
    assert "Nothing was charged yet." in words(ledger_page(Ledger(tmp_path / "budget.db")))
    assert confide.report(Ledger(tmp_path / "budget.db"), title="Ours").title == "Ours"
    with refused(InputError, "answers"):
        confide.report(Ledger(tmp_path / "budget.db"), answers=["x"])


@pytest.mark.slow
def test_long_ledger_has_short_page(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=1e6)
    charges = [confide.ledger.Charge(Dataset("p"), Cost(0.5, "add_remove", "m"), digest(k)) for k in range(250)]
    ledger.charge_all(charges)
    page = ledger_page(ledger)
    assert page.html.count("calibration by m</td>") == MOST_CHARGES
    assert f"{250 - MOST_CHARGES} older charges are in" in words(page)
    assert len(page.html) < 100_000


def test_chart_ends_at_total():
    costs = [Cost(0.1 * (k % 7), "add_remove", "m", None, Group(f"p{k % 2}", str(k % 3))) for k in range(20)]
    costs += [Cost(0.3, "add_remove", "m")]
    for k, total in enumerate(running(costs), 1):
        assert total == largest_sum(costs[:k], lambda cost: cost.exact)
    assert running([]) == []
    assert running(costs)[-1] > Fraction(1)


def test_on_the_command_line(ledger, tmp_path, capfd):
    from confide.cli.run import main

    place = str(ledger.path)
    assert main(["ledger", "report", place, "--out", str(tmp_path / "l.html"), "--without-names", "--title", "T"]) == 0
    assert (tmp_path / "l.html").read_text() == ledger_page(ledger, who=False, title="T").html
    assert main(["ledger", "report", place, "--out", place]) != 0
    assert main(["ledger", "check", place, "--json"]) == 0
    assert json.loads(capfd.readouterr().out.partition("\n")[2])["seal"] == ledger.hashes()[-1]


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1100])
def test_in_a_browser(ledger, tmp_path, width):
    """It says nothing to the console, asks the network for nothing, and fits its window."""
    path = ledger_page(ledger, title=HOSTILE).save(tmp_path / "page.html")
    with chromium() as browser, Opened(browser, path, width=width, scheme="dark") as opened:
        assert (opened.complaints, opened.requests) == ([], [])
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        assert opened.page.locator("svg polyline").count() == 1
        assert opened.text("h1") == HOSTILE
