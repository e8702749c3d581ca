"""One self-contained HTML page as a value: template, styles, scripts and data in one text, which may load nothing else.

The Content-Security-Policy names every script and style by its hash, so nothing that a class name or a file name might
smuggle in could run; jinja2 escapes them besides.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from confide.reports.numbers import number, percent
from confide.reports.terms import TERMS
from confide.support import Place, as_place, needs_extra, refuse_other_than_html, write_text

SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "assets/charts.js", "assets/explore.js", "assets/page.js")
STYLE = "assets/page.css"
PLOT_STYLE = "+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="
"""SHA-256 of the style sheet that Observable Plot puts into every chart of class `plot`."""


@dataclass(frozen=True, repr=False)
class Page:
    """One self-contained HTML page: it loads nothing and sends nothing.

    Parameters
    ----------
    title
        Its heading.
    html
        Its text, about 0.6 MB.

    Examples
    --------
    >>> Page("Triage", "<!doctype html>...")
    Page('Triage', 0.0 MB of HTML)
    """

    title: str
    html: str

    def save(self, path: str | Place, *, overwrite: bool = False) -> Place:
        """Write the page to a file, atomically, and return its path.

        Raises
        ------
        InputError
            If the file exists and may not be overwritten, cannot be written, or has the name of another kind of file.
        """
        refuse_other_than_html(path)
        write_text(path, self.html, overwrite=overwrite)
        return as_place(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for notebooks: its styles stay inside, and it cannot reach the notebook."""
        return (
            f'<iframe title="{escape(self.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: 640px; border: 0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {len(self.html) / 1e6:.1f} MB of HTML)"


def page_of(
    template: str, title: str, context: dict[str, Any], data: dict[str, Any], scripts: Sequence[str] = SCRIPTS
) -> Page:
    """A template of `templates`, filled in with what it speaks of, escaped, and with JSON values that scripts draw."""
    style, texts = _text(STYLE), [_text(name) for name in scripts]
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in texts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_hash(style)}' 'sha256-{PLOT_STYLE}'; "
        "base-uri 'none'; form-action 'none'"
    )
    made = _environment().get_template(template)
    html = made.render(**context, title=title, data=data, scripts=texts, style=style, policy=policy)
    return Page(title, html + "\n")


def options(text: str) -> Any:
    """A sentence, escaped, with the options of commands in it set as code, and whatever stands between backticks.

    Examples
    --------
    >>> str(options("calibrate <again> with --by-class."))
    'calibrate &lt;again&gt; with <code>--by-class</code>.'
    >>> str(options("`confide ledger limit` sets one."))
    '<code>confide ledger limit</code> sets one.'
    """
    from markupsafe import Markup

    pieces = re.split(r"(`[^`]+`|(?<![\w-])--[a-z][a-z-]*[a-z])", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(one.strip("`")) if i % 2 else one for i, one in enumerate(pieces)
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def _text(name: str) -> str:
    return files("confide.reports").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    with needs_extra("a page", "standard"):
        import jinja2

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number, "options": options}
    made.globals["terms"] = TERMS
    return made
