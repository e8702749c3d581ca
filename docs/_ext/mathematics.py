"""Formulas become MathML when the site is built, by docutils' converter: no network, no script; screen readers know it.

A formula that the converter does not know is a warning, on which a strict build fails. Browsers do not break lines
inside MathML, so a long formula in a sentence is divided after its relations, where TeX would break it.
"""

import xml.etree.ElementTree as ET
from itertools import zip_longest
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
APPLY = "\N{FUNCTION APPLICATION}"
ROWS = ("math", "mrow", "mtd", "mstyle", "msqrt")
THIN = "0.1667em"
PLAIN = ("{", "}", "⌈", "⌉", "⌊", "⌋", "∣", "|")  # these grow with what stands between them only where it is asked for
OPENING, CLOSING = "([{⌈⌊⟨", ")]}⌉⌋⟩"
RELATIONS = ("=", "≤", "≥", "<", ">", "∈", "≠", "≈", "∝", "→", "⇒", "⇔", "≔", "∼", "≪", "≫", "⊂", "⊆")
SHORT = 14  # letters and signs that a phone has room for in one line
log = logging.getLogger(__name__)


def tree(latex: str, as_block: bool = False) -> ET.Element:
    """The MathML of a formula; names of functions stand apart from what they are applied to, as in TeX.

    Raises
    ------
    MathError
        If the formula has a command that the converter does not know, or braces that do not match.
    """
    if latex.count("{") != latex.count("}"):  # which the converter would mend without a word
        raise MathError(f"Braces that do not match in {latex}")
    try:
        text = tex2mathml(latex, as_block=as_block)
    except (IndexError, AttributeError) as error:  # the converter's own, for formulas that end too early
        raise MathError(f"{latex} is not a whole formula ({error})") from error
    root = ET.fromstring(text.replace("&ApplyFunction;", APPLY))  # noqa: S314 - made right here
    for element in root.iter():
        element.tag = element.tag.removeprefix(NAMESPACE)
        element.tail = None
        if element.tag not in ("mi", "mn", "mo", "mtext"):
            element.text = None
    for row in [element for element in root.iter() if element.tag in ROWS]:
        space(row)
    return root


def space(row: ET.Element) -> None:
    """Spaces as TeX has them in one row: names of functions stand apart from a letter and not from a bracket."""
    for place, (item, after) in reversed(list(enumerate(zip_longest(row, list(row)[1:])))):
        opens = after is None or (after.text or "")[:1] in ("", *OPENING, APPLY)
        if item.tag == "mo" and item.text == APPLY and not opens:
            row.insert(place + 1, ET.Element("mspace", width=THIN))
        name = next(iter(item.iter("mo")), None)  # max, or its limits below it
        if item.tag in ("mo", "munder", "msub") and name is not None and (name.text or "").isalpha():
            name.attrib |= {"lspace": "0", "rspace": "0" if opens and item is name else THIN}
        elif item.tag == "mo" and item.text == "/":
            item.attrib |= {"lspace": "0", "rspace": "0"}
        elif item.tag == "mo" and item.text in PLAIN and not item.attrib:
            item.set("stretchy", "false")


def pieces(root: ET.Element) -> list[ET.Element]:
    """A formula in a sentence; a long one is divided after relations and commas that stand outside all brackets."""
    if len("".join(root.itertext())) <= SHORT:
        return [root]
    found, depth = [ET.Element("math")], 0
    for item in list(root):
        found[-1].append(item)
        sign = (item.text or "") if item.tag == "mo" else ""
        depth += (sign != "" and sign in OPENING) - (sign != "" and sign in CLOSING)
        if depth == 0 and sign in (*RELATIONS, ","):
            item.set("form", "infix")
            found.append(ET.Element("math"))
    return [piece for piece in found if len(piece)]


def html(latex: str, as_block: bool = False) -> str:
    """The HTML of one formula."""
    root = tree(latex, as_block)
    parts = [root] if as_block else pieces(root)
    return "<wbr>".join(ET.tostring(part, encoding="unicode") for part in parts)


def convert(node: nodes.Element, as_block: bool) -> str:
    """The HTML of a formula on a page, or a warning and its source."""
    latex = node.astext()
    try:
        return html(latex, as_block)
    except MathError as error:
        log.warning("%s in the formula %s", error, latex, location=node)
        return f"<code>{latex}</code>"


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a sentence."""
    self.body.append(f'<span class="formula">{convert(node, as_block=False)}</span>')
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    """Write a formula in lines of its own, which scroll in their box where a screen is too narrow."""
    self.body.append(self.starttag(node, "div", CLASS="displayed-formula"))
    self.body.append(f"{convert(node, as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Join the build."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.add_css_file("mathematics.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
