"""Pictures of the pages for the documentation: `nox -s screenshots` (needs Chromium, Playwright and Pillow)."""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.small import small
from tests.reports.browser import Opened, chromium
from tests.reports.pages import CLASSES, write_all

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LIGHT = {"light": (1000, "light")}
LOOKS = {"report": LIGHT | {"dark": (1000, "dark"), "phone": (360, "light")}}
"""Name -> widths and colours, of pictures that the documents show in more than one look."""
VIEWS = {
    "report": ("report", ".brand", "#part-2"),
    "report-evaluation": ("report", "#part-3", "#part-3 figure"),
    "report-private": ("private", "#part-3", "#part-3 figure"),
    "report-levels": ("levels", "#part-3", "#part-3 figure"),
    "federated": ("federated", "h2:text-is('The silos')", "section:has(h2:text-is('The silos')) table"),
}
"""Name -> page, and the elements at which a picture begins and ends."""
MARGIN, COLOURS = 24, 128


def picture(opened: Opened, first: str, last: str) -> bytes:
    """A PNG from the top of one element to the bottom of another, over the whole width."""
    boxes = [opened.page.locator(selector).first.bounding_box() for selector in (first, last)]
    top, bottom = boxes[0]["y"] - MARGIN, boxes[1]["y"] + boxes[1]["height"] + MARGIN
    width = opened.page.viewport_size["width"]
    clip = {"x": 0, "y": max(top, 0), "width": width, "height": bottom - max(top, 0)}
    return bytes(opened.page.screenshot(full_page=True, clip=clip))


def save(png: bytes, path: Path) -> int:
    """Write it with few colours, which is enough for pages."""
    from PIL import Image

    image: Any = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)
    return path.stat().st_size


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        pages = write_all(Path(folder), CLASSES)
        for name, (kind, first, last) in small(list(VIEWS.items()), list(VIEWS.items())[:1]):
            for look, (width, scheme) in LOOKS.get(name, LIGHT).items():
                with Opened(browser, pages[kind], width=width, scheme=scheme) as opened:
                    path = FOLDER / f"{name}-{look}.png"
                    size = save(picture(opened, first, last), path)
                    sys.stdout.write(f"{path}: {size:,} bytes\n")


if __name__ == "__main__":
    main()
