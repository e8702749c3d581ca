"""One self-contained HTML page: template, styles, scripts and data in one file, which may load nothing else.

The Content-Security-Policy names every script and style by its hash, so nothing that a class name or a file name might
smuggle in could run; jinja2 escapes them besides.
"""

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "assets/charts.js", "assets/explore.js", "assets/page.js")
STYLE = "assets/page.css"
PLOT_STYLE = "+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="
"""SHA-256 of the style sheet that Observable Plot puts into every chart of class `plot`."""


def render(template: str, context: dict[str, Any], data: dict[str, Any]) -> str:
    """The HTML text of a template, filled in.

    Parameters
    ----------
    template
        A file name in `templates`.
    context
        What it speaks of; escaped.
    data
        What the scripts draw, as JSON values.
    """
    scripts = [_text(name) for name in SCRIPTS]
    style = _text(STYLE)
    made = _environment().get_template(template)
    policy = _policy(style, scripts)
    html: str = made.render(**context, data=data, scripts=scripts, style=style, policy=policy)
    return html + "\n"


def _policy(style: str, scripts: list[str]) -> str:
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_hash(style)}' 'sha256-{PLOT_STYLE}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def _text(name: str) -> str:
    return files("confide.reports").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    from confide.reports.numbers import number, percent

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number}
    return made
