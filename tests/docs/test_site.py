"""Names on pages link to their targets, theorems to their tests; the check of the built site finds defects."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import confide
from tests.docs.blocks import ROOT

pytest.importorskip("sphinx", reason="needs the documentation's tools: make docs")

STATEMENT = re.compile(r"^\*\*((?:Theorem|Lemma|Proposition|Corollary)\b.*?)\.\*\*", re.MULTILINE)
TEST = re.compile(r"`((?:tests/)?[\w/]*test_\w+(?:\.py)?(?:::\w+)?)`")
THEORY = (
    "docs/theory.md", "docs/theory-two-sided.md", "docs/theory-noisy-size.md", "docs/theory-last-rule.md",
    "docs/theory-labels.md", "docs/theory-federated.md", "docs/theory-composition.md",
)  # fmt: skip


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_ext" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


source_pages, site_check, packages, package_pages, mathematics = map(
    load, ("source_pages", "site_check", "packages", "package_pages", "mathematics")
)


def checks_named(text):
    """The tests that a text names, as (file, definition); LookupError if one does not exist."""
    found = []
    for paragraph in text.split("\n\n"):
        named = []
        for name in TEST.findall(paragraph):
            target = source_pages.target(name, named)
            named.append(target[0])
            found.append(target)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", THEORY)
def test_every_statement_is_linked_to_a_test(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    begins = [match.start() for match in STATEMENT.finditer(text)]
    assert begins, page
    # The checks of a statement are named before the second next one: statements may share a paragraph of checks.
    sections = [text[begin:end] for begin, end in zip(begins, [*begins[2:], len(text), len(text)], strict=False)]
    for section in sections:
        assert [name for _, name in checks_named(section)], section.splitlines()[0]


@pytest.mark.slow
def test_every_test_named_in_a_document_exists():
    found = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" not in page.parts:
            found += checks_named(page.read_text(encoding="utf-8"))
    assert len(found) > 60


@pytest.mark.slow
def test_missing_names_raise_an_error():
    for name in (
        "test_nothing_of_this_name",
        "tests/test_nothing.py",
        "tests/mechanisms/test_privacy_exact.py::test_nothing",
    ):
        with pytest.raises(LookupError):
            source_pages.target(name, [])
    assert source_pages.target("alpha", []) is None


def test_every_public_name_is_in_the_reference():
    """Every package has a page with its exports; together they have all exports of `confide`."""
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")}
    shown = [package for package in packages.order() if package not in ("__main__", "cli", "demo")]
    assert set(pages) == {*shown, "index"}
    assert all(f".. package:: confide.{package}\n" in pages[package] for package in shown)
    others = ("torch", "monai", "array_api", "onnx", "mlflow")  # these need packages that may be missing
    light = [package for package in shown if package not in others]
    modules = [importlib.import_module(f"confide.{package}") for package in light]
    listed = {full for module in modules for full in package_pages.exported(module).values()}
    assert {f"confide.{name}" for name in confide.__all__} <= listed


def test_the_reference_is_in_the_order_of_the_packages():
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    order = [package for package in packages.order() if re.search(rf"^{package}$", text, flags=re.MULTILINE)]
    assert [line for line in text.splitlines() if line in order] == order
    layout = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    assert all(f"(reference/{package}.md)" in layout for package in order)


@pytest.mark.slow
def test_package_picture_shows_the_imports():
    """The picture follows the imports: a removed import is a removed arrow; implied imports are not drawn."""
    assert packages.needed({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert packages.PICTURE.read_text(encoding="utf-8") == packages.picture()


def test_site_check_finds_defects(tmp_path):
    good = '<h1 id="top">x</h1><a href="#top">t</a><a href="b.html#place">b</a><a href="https://example.org">e</a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="place">')
    (tmp_path / "s.css").write_text("p { background: url(data:image/png;base64,AA) }")
    assert site_check.problems(tmp_path) == []
    (tmp_path / "b.html").write_text("<p>")
    (tmp_path / "a.html").write_text(good + '<script src="https://cdn.example.org/x.js"></script><img src="none.png">')
    (tmp_path / "s.css").write_text("@import 'https://fonts.example.org/f';")
    assert [line.split(" ", 1) for line in site_check.problems(tmp_path)] == [
        ["a.html", "loads https://cdn.example.org/x.js"],
        ["a.html", "refers to none.png, which does not exist"],
        ["a.html", "refers to b.html#place, which has no such place"],
        ["s.css", "loads from the network"],
    ]
    assert site_check.problems(Path(tmp_path / "nothing")) != []


def test_site_check_finds_addresses_in_scripts(tmp_path):
    (tmp_path / "a.html").write_text("<h1>x</h1>")
    (tmp_path / "_static").mkdir()
    script = 'load("https://example.org/x.js"); // "http://www.w3.org/2000/svg"'
    (tmp_path / "_static" / "other.js").write_text(script)
    assert site_check.problems(tmp_path) == ["_static/other.js names https://example.org/x.js"]


def test_site_check_finds_formulas_that_are_not_set(tmp_path):
    page = tmp_path / "a.html"
    page.write_text("<p>A price of 5 is no <code>$HOME</code>, and x is <math><mi>x</mi></math>.</p><pre>\\frac</pre>")
    assert site_check.problems(tmp_path) == []
    assert site_check.Page(page.read_text()).formulas == 1
    page.write_text("<p>With $x$, \\frac and S_{k}.</p>")
    assert [line.rpartition(" ")[2] for line in site_check.problems(tmp_path)] == ["$x$,", "\\frac", "S_{k}."]


DISPLAYED = re.compile(r"^ *\$\$\n(.*?)^ *\$\$$", re.MULTILINE | re.DOTALL)
IN_SENTENCES = re.compile(r"(?<![\\$`\w])\$(?!\s)([^$`]+?)(?<!\s)\$(?![\d$])")


@pytest.mark.parametrize("page", [*THEORY, *(f"docs/{n}.md" for n in ("methods", "papers", "limits"))])
def test_every_formula_of_the_theory_is_set(page):
    """The converter of the site typesets every formula without an error, and no formula stays text."""
    source = (ROOT / page).read_text(encoding="utf-8")
    tables = [(ROOT / page).parent / name for name in re.findall(r"^:file: (.*)$", source, flags=re.MULTILINE)]
    text = re.sub(r"^```.*?^```", "", source, flags=re.MULTILINE | re.DOTALL)
    text = "\n\n".join([text, *(table.read_text(encoding="utf-8") for table in tables)])
    shown = DISPLAYED.findall(text)
    said = IN_SENTENCES.findall(DISPLAYED.sub("", text))
    assert len(shown) + len(said) >= 10, page
    for formula in shown:
        assert "<math" in mathematics.html(formula, as_block=True)
    for formula in said:
        assert "<math" in mathematics.html(formula)


def test_formulas_are_spaced_and_divided_as_tex_does_it():
    assert mathematics.html("x").count("<math") == 1
    long = mathematics.html(r"\mathbb{P}(R = k) \le f(a, b) = 1 - \max(a, b)")
    assert long.count("<math") == 3  # after two relations; neither inside brackets nor at their commas
    assert 'lspace="0" rspace="0">max</mo>' in long
    assert "<mspace" in mathematics.html(r"\ln m")
    assert "<mspace" not in mathematics.html(r"\ln(m)")
    for wrong in (r"\nosuchcommand", "{x"):
        with pytest.raises(mathematics.MathError):
            mathematics.html(wrong)
