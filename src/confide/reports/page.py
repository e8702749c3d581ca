"""Pages, number formats and explanations of terms.

A `Page` is one self-contained HTML text with template, styles, scripts and data. It must not load anything else.

The Content-Security-Policy names every script and style by its hash, so a script in a class name or file name cannot
run. jinja2 also escapes all names.
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

from confide.errors import InputError, InputTypeError
from confide.support import Chart, FileLocation, as_place, needs_extra, refuse_other_than_html, write_text


def percent(level: float) -> str:
    r"""Format a share in per cent, without trailing zeros, with a no-break space.

    Examples
    --------
    >>> percent(0.9), percent(0.999), percent(0.0712345)
    ('90\xa0%', '99.9\xa0%', '7.1235\xa0%')
    """
    return f"{100 * level:.4f}".rstrip("0").rstrip(".") + "\u00a0%"


def hundredths(share: float) -> str:
    """Format a share in per cent with two decimals."""
    return f"{100 * share:.2f}\u00a0%"


def number(value: float) -> str:
    """Format a number with five significant digits; +inf is written +∞.

    Examples
    --------
    >>> number(0.912345678), number(float("inf"))
    ('0.91235', '+∞')
    """
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def dots(coverage: float) -> int | None:
    """Number of covered dots out of a hundred; None if a hundred dots cannot show the level exactly."""
    whole = math.floor(100 * coverage + 1e-9)
    return whole if abs(100 * coverage - whole) < 1e-6 and 0 < whole < 100 else None


TERMS: Mapping[str, str] = MappingProxyType(
    {
        "Target rank": "The rank, among the records’ scores in ascending order, at which the threshold aims. It is "
        "chosen so that the promise holds in spite of the noise.",
        "Slopes per rank, below and above it": "How fast the weight of a candidate threshold in the draw falls with "
        "each rank between it and the target: by the factor e to the power of this number.",
        "Rise of the prior weights": "Public weights that grow along the candidates and do not depend on records.",
        "Prior bonus of +inf": "By how many ranks the candidate that excludes nothing is favoured. With too few "
        "records it is drawn, and not a threshold that covers too little.",
        "Drawn by": "The rule of the draw, and the size of its noise. One candidate is drawn; candidates near the "
        "target are more likely.",
        "Largest weight": "Records count in whole steps, at most so many each.",
        "Nonconformity score": "A number that says how badly a label or a value fits a record; larger means worse.",
        "Miscoverage level alpha": "The share of true labels or values that may be missed.",
        "Candidate thresholds": "The public list from which the threshold is drawn, fixed without looking at records.",
        "Certified coverage": "A lower bound of coverage for every distribution of scores, computed for exactly this "
        "mechanism.",
        "Failure probability delta": "The probability that records or noise are so unlucky that less is covered.",
        "Certified by": "Where the library’s documentation contains the proof.",
        "Expected coverage": "With scores as described below, averaged over records and noise.",
        "Chance of +inf": "A threshold of +∞ excludes nothing. It is the honest answer with too few records.",
        "Coverage at most": "Distributions without ties do not give more, except for the mass between two "
        "neighbouring candidates.",
        "Rank without privacy": "The rank that conformal prediction takes without noise: ⌈(n + 1)(1 − α)⌉.",
        "Gaps in the scores": "Candidates in a gap between scores are as good as those at its end, so a draw may land "
        "beyond the gap.",
        "Records needed": "With so many records a useful answer is nearly certain.",
    }
)


SCRIPT, STYLE = "assets/page.js", "assets/page.css"


@dataclass(frozen=True, repr=False)
class Page:
    """One self-contained HTML page; it loads nothing and sends nothing.

    Parameters
    ----------
    title
        Heading of the page.
    html
        HTML text of the page, about 60 kB.

    Examples
    --------
    >>> Page("Triage", "<!doctype html>...")
    Page('Triage', 0 kB of HTML)
    """

    title: str
    html: str

    def save(self, path: str | FileLocation, *, overwrite: bool = False) -> FileLocation:
        """Write the page to a file, atomically, and return its path.

        Raises
        ------
        InputError
            If the file exists and must not be overwritten, cannot be written, or has the suffix of another format.
        """
        refuse_other_than_html(path)
        write_text(path, self.html, overwrite=overwrite)
        return as_place(path)

    def _repr_html_(self) -> str:
        """HTML of the page in a frame, for notebooks; the page's styles and scripts do not reach the notebook."""
        return (
            f'<iframe title="{escape(self.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: 640px; border: 0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {len(self.html) / 1e3:.0f} kB of HTML)"


MOST_TITLE = 200


def check_title(title: str | None) -> None:
    """Check the heading of a document, if there is one.

    Raises
    ------
    InputError, InputTypeError
        If it is not a text of 1 to 200 printable characters.
    """
    if title is not None and not isinstance(title, str):
        raise InputTypeError("title", "must be a str", type(title).__name__)
    if title is not None and not (0 < len(title) <= MOST_TITLE and title.isprintable()):
        raise InputError("title", f"must have 1 to {MOST_TITLE} printable characters")


def page_of(template: str, title: str, context: dict[str, Any], *, script: bool = True) -> Page:
    """Fill in a template of `templates`, with escaping."""
    style, texts = _text(STYLE), [_text(SCRIPT)] if script else []
    allowed = " ".join(f"'sha256-{_hash(text)}'" for text in texts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page_template = _environment().get_template(template)
    html = page_template.render(**context, title=title, scripts=texts, style=style, policy=policy)
    return Page(title, html + "\n")


def options(text: str) -> Any:
    """Escape a sentence, and mark command options and texts between backticks as code.

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


def escape_except_quotes(text: str) -> Any:
    """Escape a text for a place outside of tags; quotation marks stay unchanged.

    Examples
    --------
    >>> str(escape_except_quotes('{"score": "<lac>"}'))
    '{"score": "&lt;lac&gt;"}'
    """
    from markupsafe import Markup

    return Markup(escape(text, quote=False))  # noqa: S704 - it is escaped


def svg(chart: Chart) -> Any:
    """Chart as an element of the page."""
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

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "number": number,
        "options": options,
        "svg": svg,
        "escape_except_quotes": escape_except_quotes,
    }
    environment.globals["terms"] = TERMS
    return environment
