"""Include SVG pictures in the page itself, so that they have its colours and their links work."""

from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "images"


def place(app: Any, doctree: Any, page: str) -> None:
    """Replace the image of an SVG file by its contents, which include a text for screen readers."""
    from docutils import nodes

    for image in list(doctree.findall(nodes.image)):
        file = IMAGES / Path(image["uri"]).name
        if file.suffix == ".svg" and app.builder.format == "html":
            text = f'<div class="picture {file.stem}-picture">{file.read_text(encoding="utf-8")}</div>'
            image.parent.replace_self(nodes.raw("", text, format="html"))


def setup(app: Any) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("doctree-resolved", place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
