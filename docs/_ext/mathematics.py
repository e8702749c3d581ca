"""Formulas become MathML when the site is built, by docutils' converter: no network, no script, accessible.

A formula that the converter cannot convert is a warning, and a strict build fails. Browsers do not break lines
inside MathML, so a long formula in a sentence is divided after its relations, where TeX would break it.
"""

import re
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
PLAIN = ("{", "}", "⌈", "⌉", "⌊", "⌋", "∣", "|")  # these grow with their contents only if requested
OPENING, CLOSING = "([{⌈⌊⟨", ")]}⌉⌋⟩"
RELATIONS = ("=", "≤", "≥", "<", ">", "∈", "≠", "≈", "∝", "→", "⇒", "⇔", "≔", "∼", "≪", "≫", "⊂", "⊆")
SHORT = 14  # letters and signs that fit into one line of a phone
AFTER, BEFORE = re.compile(r"[.,;:)\]?!'’-]+(?:\w{1,2}\b)?"), re.compile(r"[(\[]+$")  # also the th of "k-th"
log = logging.getLogger(__name__)


def tree(latex: str, as_block: bool = False) -> ET.Element:
    """The MathML of a formula, with the spaces and primes of TeX; sums in aligned lines are of the usual size.

    Raises
    ------
    MathError
        If the formula has an unknown command or unmatched braces.
    """
    if latex.count("{") != latex.count("}"):  # the converter would correct it silently
        raise MathError(f"Braces that do not match in {latex}")
    try:
        text = tex2mathml(latex, as_block=as_block)
    except (IndexError, AttributeError) as error:  # the converter's error for formulas that end too early
        raise MathError(f"{latex} is not a whole formula ({error})") from error
    root = ET.fromstring(text.replace("&ApplyFunction;", APPLY))  # noqa: S314 - made right here
    for element in root.iter():
        element.tag = element.tag.removeprefix(NAMESPACE)
        element.tail = None
        if element.tag not in ("mi", "mn", "mo", "mtext"):
            element.text = None
        if element.tag == "mtable" and "ams-align" in element.get("class", ""):
            element.set("displaystyle", "true")
    for row in [element for element in root.iter() if element.tag in ROWS]:
        prime(row)
        space(row)
    return root


def prime(row: ET.Element) -> None:
    """Raise primes, over an index if there is one."""
    for place in range(len(row) - 1, 0, -1):
        before, item = row[place - 1], row[place]
        mark = item[0] if item.tag == "msub" and len(item) else item
        if mark.tag != "mo" or set(mark.text or " ") != {"'"}:
            continue
        raised = ET.Element("mo", lspace="0", rspace="0")
        raised.text = "\N{PRIME}" * len(mark.text or "")
        if item is not mark:
            parts, tag = [before, item[1], raised], "msubsup"
        elif before.tag == "msub":
            parts, tag = [*before, raised], "msubsup"
        else:
            parts, tag = [before, raised], "msup"
        new = ET.Element(tag)
        new.extend(parts)
        row.remove(item)
        row[place - 1] = new


def space(row: ET.Element) -> None:
    """Spaces of TeX in one row: a space between the name of a function and a letter, none before a bracket."""
    for place, (item, after) in reversed(list(enumerate(zip_longest(row, list(row)[1:])))):
        opens = after is None or next((part.text for part in after.iter() if part.text), "")[:1] in (*OPENING, APPLY)
        opens &= after is None or after.tag in ("mo", "mrow")
        if item.tag == "mo" and item.text == APPLY and not opens:
            row.insert(place + 1, ET.Element("mspace", width=THIN))
        name = next(iter(item.iter("mo")), None)  # max, or its limits below it
        if item.tag in ("mo", "munder", "msub") and name is not None and (name.text or "").isalpha():
            apart = place > 0 and row[place - 1].tag != "mo"
            name.attrib |= {"lspace": THIN if apart else "0", "rspace": "0" if opens and item is name else THIN}
        elif item.tag == "mo" and item.text in ("/", "|", "‖"):
            item.attrib |= {"lspace": "0", "rspace": "0"}
        elif item.tag == "mo" and item.text in PLAIN and not item.attrib:
            item.set("stretchy", "false")


def pieces(root: ET.Element, as_block: bool = False) -> list[ET.Element]:
    """A long formula, divided outside all brackets where a line may end.

    In a sentence this is after relations and commas. In a displayed formula it is before relations, as in TeX, and
    between adjacent formulas.
    """
    if len("".join(root.itertext())) <= SHORT or any(element.tag == "mtable" for element in root):
        return [root]
    found, depth = [ET.Element("math", root.attrib)], 0
    for item in list(root):
        sign = (item.text or "") if item.tag == "mo" else ""
        depth += (sign != "" and sign in OPENING) - (sign != "" and sign in CLOSING)
        side = as_block and item.tag == "mspace" and item.get("width") in ("1em", "2em")
        ends = depth == 0 and sign in (RELATIONS if as_block else (*RELATIONS, ","))
        if ends:
            item.set("form", "infix")
        if side:
            found[-1].set("class", "adjacent")
        if (side or (as_block and ends)) and len(found[-1]):
            found.append(ET.Element("math", root.attrib))
        if not side:
            found[-1].append(item)
        if ends and not as_block:
            found.append(ET.Element("math", root.attrib))
    return [piece for piece in found if len(piece)]


def html(latex: str, as_block: bool = False) -> str:
    """The HTML of one formula."""
    parts = [ET.tostring(piece, encoding="unicode") for piece in pieces(tree(latex, as_block), as_block)]
    return ("\n" if as_block else "<wbr>").join(parts)


def convert(node: nodes.Element, as_block: bool) -> str:
    """The HTML of a formula on a page, or a warning and its source."""
    latex = node.astext()
    try:
        return html(latex, as_block)
    except MathError as error:
        log.warning("%s in the formula %s", error, latex, location=node)
        return f"<code>{latex}</code>"


def join_punctuation(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Prevent line breaks between a formula and the brackets, commas and points around it, which browsers allow."""
    for node in list(doctree.findall(nodes.math)):
        place = node.parent.index(node)
        before = node.parent[place - 1] if place else None
        after = node.parent[place + 1] if place + 1 < len(node.parent) else None
        if isinstance(after, nodes.Text) and (found := AFTER.match(after)):
            node["after"] = found.group()
            node.parent[place + 1] = nodes.Text(after[found.end() :])
        if isinstance(before, nodes.Text) and (found := BEFORE.search(before)):
            node["before"] = found.group()
            node.parent[place - 1] = nodes.Text(before[: found.start()])


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a sentence; its first part keeps the opening signs before it, its last part those after it."""
    first, *others = convert(node, as_block=False).split("<wbr>")
    first = node.get("before", "") + first
    *parts, last = [first, *others]
    last = f'<span class="formula">{last}{node.get("after", "")}</span>'
    self.body.append("<wbr>".join([*(f'<span class="formula">{part}</span>' for part in parts), last]))
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, which scrolls in its box if a screen is too narrow."""
    self.body.append(self.starttag(node, "div", CLASS="displayed-formula"))
    self.body.append(f"{convert(node, as_block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.add_css_file("mathematics.css")
    app.connect("doctree-resolved", join_punctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
