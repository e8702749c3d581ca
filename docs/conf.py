"""Configuration of the documentation: Sphinx, Markdown by MyST, the PyData theme. Nothing is loaded from the network.

MkDocs Material is inactive according to its newest release and ends in May 2027; its successor is in alpha. Pages do
not depend on the choice.
"""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import confide

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "confide"
author = "The confide developers"
copyright = f"2026, {author}"  # noqa: A001
version = release = confide.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["sphinx.ext.mathjax", "sphinx-mathjax-offline", "inline_pictures", "package_pages"]
exclude_patterns = ["_build", "_ext"]
templates_path = ["_templates"]
suppress_warnings = ["toc.empty_glob"]

myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "dollarmath"]
myst_dmath_allow_digits = False  # a price in dollars is no formula

smartquotes = False  # formulas of docstrings are plain text
default_role = "literal"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# The reference of an integration needs no other package: its signatures and texts are the same without it.
INTEGRATIONS = ("torch", "array_api_compat", "google", "onnx")  # google: protobuf, of onnx
autodoc_mock_imports = [name for name in INTEGRATIONS if find_spec(name) is None]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

html_theme = "pydata_sphinx_theme"
html_title = f"confide {release}"
html_static_path = ["_static"]
html_css_files = ["confide.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "tutorial": [], "migrating": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
NDARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[~?(?:typing\.)?tuple\[[^\]]*\], (?:~?numpy\.)?dtype\[([^\]]*)\]\]")


def name_array_types(app: Sphinx, what: str, name: str, item: Any, options: Any, signature: Any, result: Any) -> Any:
    """Show ArrayLike and NDArray in signatures, as in the source, instead of their definitions."""

    def plain(text: str) -> str:
        return NDARRAY.sub(r"NDArray[\1]", text.replace(ARRAY_LIKE, "ArrayLike"))

    return signature and plain(signature), result and plain(result)


LLMS = """# confide

> Prediction sets with a finite-sample coverage guarantee and a differential-privacy guarantee, for any model, on one
> machine, in a database, or across silos. Python: `import confide`; command line: `confide`.

Calibrate with `confide.calibrate(scores, alpha, epsilon)`, predict with `confide.predict_set(probabilities, release)`.
Every release states its guarantee and its privacy loss, and `confide verify` computes both again.

## Pages

"""


def list_pages(app: Sphinx, failed: Exception | None) -> None:
    """Write `llms.txt`, which lists all pages for language models."""
    if failed is None and app.builder.format == "html":
        pages = (f"- [{app.env.titles[name].astext()}]({name}.html)\n" for name in sorted(app.env.titles))
        (Path(app.outdir) / "llms.txt").write_text(LLMS + "".join(pages), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    app.config.mathjax_path = "mathjax/tex-svg.js"  # of sphinx-mathjax-offline: its fonts are part of the file
    app.connect("autodoc-process-signature", name_array_types)
    app.connect("build-finished", list_pages)
