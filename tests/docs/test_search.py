"""The search index has the text of the pages by section; the picture of the home page shows its numbers."""

import hashlib

import pytest

from tests.docs.blocks import ROOT
from tests.docs.test_site import load

pytest.importorskip("sphinx", reason="needs the documentation's tools: make docs")

search_pages, price_picture = map(load, ("search_pages", "price_picture"))

PAGE = """<html><nav>menu</nav><article class="bd-article"><section id="a-page">
<h1>A page<a class="headerlink" href="#a-page">#</a></h1><p>Before&nbsp;any <b>part</b>.</p>
<section id="first"><h2>The <code>--first</code> part</h2><pre>x <span>=</span> 1</pre>
<p>Level <math><mn>1</mn><mo>−</mo><mi>α</mi><annotation>1-\\alpha</annotation></math>.</p>
<svg><style>p {}</style><text>drawn</text></svg></section>
<dl><dt class="sig sig-object py" id="confide.f"><span>f</span>(<em>alpha</em>)</dt><dd><p>What it does.</p></dd></dl>
</section></article><footer>end</footer></html>"""


def test_sections_and_names_have_their_text(tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    assert search_pages.index(tmp_path, ["page"]) == {
        "pages": [["page.html", "A page"]],
        "sections": [
            [0, "", "A page", "Before any part.", 0],
            [0, "first", "The --first part", "x = 1 Level 1−α.", 0],
            [0, "confide.f", "confide.f", "What it does. f(alpha)", 1],
        ],
    }


def test_the_vendored_library_is_the_published_one():
    """npm's minisearch 7.2.0, dist/umd/index.js, byte for byte, with its licence next to it."""
    folder = ROOT / "docs" / "_static" / "minisearch"
    digest = hashlib.sha256((folder / "minisearch-7.2.0.js").read_bytes()).hexdigest()
    assert digest == "03c27931eb603af1d3358579e9885eafdb6a2f5fa9929557b3e77d7e99d06d03"
    assert "Luca Ongaro" in (folder / "LICENSE.txt").read_text(encoding="utf-8")


def test_price_picture_shows_the_table():
    assert price_picture.PICTURE.read_text(encoding="utf-8") == price_picture.picture()
    read = price_picture.read(price_picture.NUMBERS.read_text(encoding="utf-8"))
    assert all(len(points) == 5 for points in read.values())
    assert read["slopes (ours)"][1.0][0] == pytest.approx(0.9 + 4.2 / 1000)
    assert read["pps"][0.1][1] is False
    with pytest.raises(ValueError, match="must be a number with its error"):
        price_picture.read("\n## One\n| n | epsilon | a | last |\n| 1000 | 1 | about 3 | x |\n")
