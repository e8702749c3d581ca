"""The built site in a real browser, from files on disk: nothing is loaded from elsewhere, nothing sticks out."""

import pytest

from tests.docs.blocks import ROOT
from tests.reports.browser import chromium, needs_chromium

SITE = ROOT / "docs" / "_build" / "html"
PAGES = (
    "index",
    "tutorial",
    "howto/groups",
    "theory",
    "reference/tables",
    "layout",
    "migrating",
    "benchmarks",
    "federated",
)

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not SITE.is_dir(), reason="needs the built site: make docs"),
    pytest.mark.slow,
    pytest.mark.xdist_group("site"),
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


class Site:
    """Pages of the site in one window; what they complain about and what they ask others for."""

    def __init__(self, browser, width, scheme):
        self.page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", self.listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def listen(self, message):
        if message.type in ("error", "warning"):  # the theme also says what it does
            self.complaints.append(message.text)

    def open(self, name, query=""):
        self.page.goto((SITE / f"{name}.html").as_uri() + query)
        return self.page

    def asked_others_for(self):
        return [url for url in self.requests if not url.startswith((SITE.as_uri(), "data:"))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_fit_and_load_nothing_from_elsewhere(browser, width, scheme):
    site = Site(browser, width, scheme)
    for name in PAGES:
        page = site.open(name)
        assert page.locator("h1").count() == 1, name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert site.complaints == []
    assert site.asked_others_for() == []


def test_search_finds_pages_from_files_on_disk(browser):
    site = Site(browser, 1280, "light")
    page = site.open("search", "?q=ledger")
    page.locator("#search-results li").first.wait_for()
    assert page.get_by_role("link", name="The privacy-budget ledger").count() >= 1
    assert site.complaints == []
    assert site.asked_others_for() == []


def test_a_theorem_leads_to_its_test(browser):
    page = Site(browser, 1280, "light").open("theory")
    page.get_by_role("link", name="test_all_of_eight_scores_in_five_bins").first.click()
    page.wait_for_url("**/source/tests/mechanisms/test_privacy_exact.html#*")
    assert page.locator("#test_all_of_eight_scores_in_five_bins").count() == 1
    assert page.url.endswith("#test_all_of_eight_scores_in_five_bins")
