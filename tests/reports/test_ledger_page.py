"""The page of a ledger: its figures are the ledger's, nothing else of it leaves, and it loads and runs nothing."""

import math
import re
from html import unescape

import pytest

from confide.ledger import Cost, Dataset, Group, Ledger, request_digest
from confide.reports import ledger_page

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
    text = re.sub(r"<(style|script)>.*?</\1>", "", page.html, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


@pytest.mark.slow
def test_spent_and_remaining_budget(ledger):
    said = words(ledger_page(ledger, title="Budget"))
    account = ledger.account("patients")
    for row in (
        "patients spent 2.25 in 6 releases (add_remove); limit 4 at delta 1e-06, 1.75 left",
        "calibration by slopes 0.5 0.03125 radiology stored",
        f"calibration by slopes 0.5 0.03125 {HOSTILE} stored",
        "evaluation by laplace 12 not stored none: the run ended before",
        "cardiology spent 0 in 0 releases (add_remove); limit 3, 3 left",
        "open spent +inf (not private) in 1 release (add_remove); no limit",
        "share of the limit that is spent 56.25 %",
        "by a factor of at most 9.49",  # e^2.25 = 9.488
        f"Seal of the last charge {ledger.checkpoint((0, ''), '')[1]}",
        "left for one more release 1.75",
        "region=north",
    ):
        assert row in said, row
    for bound in account.spent(1e-6).bounds:
        assert bound.derivation in said


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
