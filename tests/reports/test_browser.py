"""The pages in a real browser: what they show, what they ask for, and whether everybody can use them."""

import hashlib
import json
import re
import subprocess
import sys

import pytest

import confide
from tests.reports.browser import Opened, chromium, needs_chromium
from tests.reports.pages import HOSTILE, calibration, write_all

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.xdist_group("browser")]
KINDS = ("report", "plan", "federated", "regression", "levels", "groups", "watch", "corrected", "sizes", "private")


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_page_has_no_errors_requests_or_accessibility_findings(browser, pages, kind, scheme):
    sync = pytest.importorskip("axe_playwright_python.sync_playwright")
    with Opened(browser, pages[kind], scheme=scheme) as opened:
        assert (opened.complaints, opened.requests) == ([], [])
        for picture in opened.page.locator("figure img").all():
            assert picture.get_attribute("alt")
            assert picture.evaluate("one => one.naturalWidth") > 0
        opened.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = sync.Axe().run(opened.page)
        wrong = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found.response["violations"]]
        assert wrong == []
        assert len(found.response["passes"]) > 20


def test_policy_blocks_foreign_scripts_and_requests(browser, pages):
    """The recorder works, and so does the policy: no request leaves, and a script that is smuggled in does not run."""
    with Opened(browser, pages["plan"]) as opened:
        opened.page.evaluate(
            """() => {
                const image = document.createElement("img");
                image.src = "http://example.org/x.png";
                document.body.append(image);
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.body.append(script);
            }"""
        )
        opened.page.wait_for_timeout(200)
        assert opened.page.evaluate("window.ran") is None
        assert opened.requests == []
        assert len([line for line in opened.complaints if "Content Security Policy" in line]) == 2


def test_page_works_in_notebook_frame(browser, tmp_path):
    made, path = confide.report(calibration(), title=HOSTILE), tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><h1>Notebook</h1>{made._repr_html_()}", encoding="utf-8")
    with Opened(browser, path) as opened:
        frame = opened.page.frame_locator("iframe")
        assert frame.locator("h1").inner_text() == HOSTILE
        frame.locator("a[href='#part-3']").first.click()
        assert -1 <= frame.locator("#part-3").evaluate("one => one.getBoundingClientRect().top") < 100
        with opened.page.expect_download() as saved:
            frame.locator("#save").click()
        assert saved.value.path().read_text(encoding="utf-8") == calibration().to_json()
        assert opened.page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "32px"
        assert (opened.complaints, opened.requests) == ([], [])


def test_hostile_names_are_shown_as_text(browser, pages):
    with Opened(browser, pages["report"]) as opened:
        opened.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        assert HOSTILE in opened.text("section:has-text('Measured on labelled records')")
        assert opened.page.locator("img:not([src^='data:image/svg'])").count() == 0
        assert opened.page.locator("script").count() == 1


@pytest.mark.parametrize("kind", ["report", "federated"])
def test_certificate_can_be_saved_and_checked_by_command(browser, pages, kind, tmp_path):
    with Opened(browser, pages[kind], accept_downloads=True) as opened:
        with opened.page.expect_download() as waiting:
            opened.page.click("#save")
        saved = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(saved)
        command, digest = (opened.text(f"dt:text-is('{name}') + dd") for name in ("command", "SHA-256 of the file"))
        assert opened.complaints == []
    assert command == f"confide show {saved.name}"
    text = saved.read_text(encoding="utf-8")
    assert confide.Release.from_json(text).to_json() == text
    assert hashlib.sha256(saved.read_bytes()).hexdigest() == digest
    done = subprocess.run([sys.executable, "-m", *command.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "promise: coverage at least 0.9" in done.stdout
    altered = json.loads(text)
    altered["epsilon"] = 0.5
    saved.write_text(json.dumps(altered), encoding="utf-8")
    refused = subprocess.run([sys.executable, "-m", *command.split()], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 3
    assert re.search("altered|checksum", refused.stderr)
