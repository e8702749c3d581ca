"""The pictures of docs/gallery.md, made by running its blocks: `nox -s gallery` (needs the extra plots)."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT, blocks

PAGE, FOLDER = ROOT / "docs" / "gallery.md", ROOT / "docs" / "images" / "gallery"
COLOURS = 48


def draw(folder: Path) -> list[Path]:
    """Run every block of the page in a folder and return its pictures; user settings have no effect."""
    import matplotlib as mpl

    before, scope = Path.cwd(), {"__name__": "__main__"}
    os.chdir(folder)
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            for block in blocks(PAGE):
                if block.runs:
                    exec(compile("\n" * block.line + block.text, block.page, "exec"), scope)  # noqa: S102
    finally:
        os.chdir(before)
    return sorted(folder.glob("*.png"))


def save(made: Path) -> int:
    """Store a picture with few colours, which is sufficient for charts; return its size in bytes."""
    from PIL import Image

    image: Any = Image.open(made).convert("RGB")
    path = FOLDER / made.name
    image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)
    return path.stat().st_size


def unlike(one: Path, other: Path) -> float:
    """Return the share of ink that differs between two pictures, within a few pixels: 0 if equal, 2 if disjoint.

    Raises
    ------
    ValueError
        If their sizes differ by more than a fiftieth.
    """
    from PIL import Image, ImageChops, ImageFilter, ImageStat

    pictures: list[Any] = [ImageChops.invert(Image.open(path).convert("L")) for path in (one, other)]
    (width, height), size = pictures[0].size, pictures[1].size
    if abs(width - size[0]) > width / 50 or abs(height - size[1]) > height / 50:
        raise ValueError(f"{one.name} is {width} x {height} pixels, and {size[0]} x {size[1]}")
    first, second = (picture.resize((width, height)).filter(ImageFilter.GaussianBlur(6)) for picture in pictures)
    ink = (ImageStat.Stat(first).sum[0] + ImageStat.Stat(second).sum[0]) / 2
    return float(ImageStat.Stat(ImageChops.difference(first, second)).sum[0] / ink)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for made in draw(Path(folder)):
            sys.stdout.write(f"{made.name}: {save(made):,} bytes\n")


if __name__ == "__main__":
    main()
