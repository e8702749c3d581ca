"""The built site in a real browser, from files on disk: nothing is loaded from elsewhere, nothing overflows."""

from pathlib import Path

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
    """Pages of the site in one window, with their console messages and requests."""

    def __init__(self, browser, width, scheme):
        self.page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", self.listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def listen(self, message):
        if message.type in ("error", "warning"):  # the theme also logs its actions
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


CUT = (Path(__file__).parent / "cut.js").read_text(encoding="utf-8")
SHARES = 6
SIGHTS = {"desktop": ("screen", 1280), "phone": ("screen", 390), "paper": ("print", 718)}  # A4 between margins of 1 cm


@pytest.mark.parametrize("share", range(SHARES))
def test_nothing_is_cut_off(browser, share):
    """Every page but the listings of source files, on a desktop, a phone and paper."""
    pages = [
        path for path in sorted(SITE.rglob("*.html")) if path.relative_to(SITE).parts[0] not in ("_modules", "_static")
    ]
    assert len(pages) > 100
    page, cut = browser.new_page(), {}
    page.route("**/*.js", lambda route: route.abort())  # the layout needs none, and pages load in a third of the time
    for path in pages[share::SHARES]:
        page.goto(path.as_uri())
        for sight, (media, width) in SIGHTS.items():
            page.emulate_media(media=media)
            page.set_viewport_size({"width": width, "height": 900})
            if wrong := page.evaluate(CUT, sight == "paper"):
                cut[f"{path.relative_to(SITE)} ({sight})"] = wrong
        page.emulate_media(media="screen")
    assert cut == {}
