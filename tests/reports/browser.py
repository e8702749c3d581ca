"""Debian's Chromium, driven by Playwright: pages opened from files, everything that they ask for recorded."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() or find_spec("playwright") is None,
    reason="needs Chromium (apt-get install chromium) and Playwright for Python (pip install playwright)",
)


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page, what it said on the console, and what it asked the network for."""

    def __init__(self, browser: Any, path: Path, *, width: int = 1100, scheme: str = "light", **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", functools.partial(self._route, path.as_uri()))
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state()

    def _route(self, own: str, route: Any) -> None:
        if route.request.url == own:
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.text_content()).replace("\u00a0", " ").strip()
