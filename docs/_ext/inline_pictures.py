"""Pictures that are drawn as SVG stand in the page itself, where they take its colours and their links work."""

from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "images"


def place(app: Any, doctree: Any, page: str) -> None:
    """Put the picture itself where a page shows its file; it carries its own words for those who do not see it."""
    from docutils import nodes

    for image in list(doctree.findall(nodes.image)):
        file = IMAGES / Path(image["uri"]).name
        if file.suffix == ".svg" and app.builder.format == "html":
            text = f'<div class="picture {file.stem}-picture">{file.read_text(encoding="utf-8")}</div>'
            image.parent.replace_self(nodes.raw("", text, format="html"))


def setup(app: Any) -> dict[str, bool]:
    """Join the build."""
    app.connect("doctree-resolved", place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
