"""Numbers for people: shares in per cent, figures, and how many of a hundred.

Terms of the theory, each explained in a sentence or two where a page uses it.

One self-contained HTML page as a value: template, styles, scripts and data in one text, which may load nothing else.

The Content-Security-Policy names every script and style by its hash, so nothing that a class name or a file name might
smuggle in could run; jinja2 escapes them besides.
"""

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from confide.support import Chart, Place, as_place, needs_extra, refuse_other_than_html, write_text


def percent(level: float) -> str:
    r"""A share in per cent, without needless digits, with a space that does not break.

    Examples
    --------
    >>> percent(0.9), percent(0.999), percent(0.0712345)
    ('90\xa0%', '99.9\xa0%', '7.1235\xa0%')
    """
    return f"{100 * level:.4f}".rstrip("0").rstrip(".") + "\u00a0%"


def hundredths(share: float) -> str:
    """A share in per cent with two decimals."""
    return f"{100 * share:.2f}\u00a0%"


def number(value: float) -> str:
    """A number for people: five significant digits, +inf in words of mathematics.

    Examples
    --------
    >>> number(0.912345678), number(float("inf"))
    ('0.91235', '+∞')
    """
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def dots(coverage: float) -> int | None:
    """How many of a hundred dots are covered; None where a hundred are too few to show the level."""
    whole = math.floor(100 * coverage + 1e-9)
    return whole if abs(100 * coverage - whole) < 1e-6 and 0 < whole < 100 else None


TERMS: Mapping[str, str] = MappingProxyType(
    {
        "Target rank": "Of the records’ scores, put in order, the one that the threshold aims at, chosen "
        "so that the promise holds in spite of the noise.",
        "Slopes per rank, below and above it": "How fast the weight of a candidate threshold in the draw falls with "
        "every rank that it lies away from the target: by the factor e to the power of this number.",
        "Rise of the candidates": "A public head start for larger candidates, the same whatever the records are.",
        "Head start of +∞": "By how many ranks the candidate that excludes nothing is favoured, so that too few "
        "records lead to it and not to a threshold that covers too little.",
        "Drawn by": "The rule of the draw, and the size of its noise: one candidate is drawn, likelier the nearer it "
        "is to the target.",
        "Largest weight": "Records count in whole steps, at most so many each.",
        "Conformity score": "The number that says how strange a label or a value is for a record; larger is stranger.",
        "Miscoverage level α": "The share of truths that may be missed.",
        "Candidate thresholds": "The public list that the threshold is drawn from, fixed before any record was seen.",
        "Certified coverage": "What coverage cannot fall below, whatever the distribution of scores, computed for this "
        "very mechanism.",
        "Failure probability δ": "How likely an unlucky draw of records or noise is, which covers less.",
        "Certified by": "Where the proof is written, in the library’s documentation.",
        "Expected coverage": "With scores as described below, in the mean over records and noise.",
        "Chance of +∞": "A threshold of +∞ excludes nothing: the honest answer where records are too few.",
        "Coverage at most, on average": "No distribution without ties leads to more, but for the mass between two "
        "neighbouring candidates.",
        "Rank without privacy": "The rank that conformal prediction takes without noise: ⌈(n + 1)(1 − α)⌉.",
        "Gaps that are jumped": "Where scores leave a gap, candidates inside it are as good as those at its end, and a "
        "draw may land beyond.",
        "Records needed": "From here on a useful answer is nearly certain.",
    }
)


SCRIPT, EXPLORER, STYLE = "assets/page.js", "assets/explore.js", "assets/page.css"


@dataclass(frozen=True, repr=False)
class Page:
    """One self-contained HTML page: it loads nothing and sends nothing.

    Parameters
    ----------
    title
        Its heading.
    html
        Its text, about 60 kB.

    Examples
    --------
    >>> Page("Triage", "<!doctype html>...")
    Page('Triage', 0 kB of HTML)
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
        return f"Page({self.title!r}, {len(self.html) / 1e3:.0f} kB of HTML)"


def page_of(
    template: str, title: str, context: dict[str, Any], data: dict[str, Any] | None = None, *, script: bool = True
) -> Page:
    """A template of `templates`, filled in with what it speaks of, escaped; `data` is what the explorer looks up."""
    names = ([SCRIPT] if script else []) + ([] if data is None else [EXPLORER])
    style, texts = _text(STYLE), [_text(name) for name in names]
    allowed = " ".join(f"'sha256-{_hash(one)}'" for one in texts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_hash(style)}'; "
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


def unquoted(text: str) -> Any:
    """A text, escaped for a place outside of tags, where quotation marks stay as they are.

    Examples
    --------
    >>> str(unquoted('{"score": "<lac>"}'))
    '{"score": "&lt;lac&gt;"}'
    """
    from markupsafe import Markup

    return Markup(escape(text, quote=False))  # noqa: S704 - it is escaped


def svg(chart: Chart) -> Any:
    """A chart as an element of the page."""
    from markupsafe import Markup

    return Markup(chart.svg())  # noqa: S704 - its texts are escaped where it is drawn


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
    made.filters |= {"percent": percent, "number": number, "options": options, "svg": svg, "unquoted": unquoted}
    made.globals["terms"] = TERMS
    return made
