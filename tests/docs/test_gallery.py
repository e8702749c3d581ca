"""The gallery shows what its blocks draw."""

import re

import pytest

from tests.docs.gallery import FOLDER, PAGE, draw, unlike

MOST_UNLIKE = 0.35
"""Pictures that are drawn again differ by up to 0.15: thresholds contain noise, and colours are fewer. Other data give
pictures that differ by more than 0.4."""


def test_the_page_shows_every_picture_that_it_saves():
    text = PAGE.read_text(encoding="utf-8")
    shown, saved = (re.findall(form, text) for form in (r"images/gallery/([\w-]+\.png)", r"savefig\(\"([\w-]+\.png)"))
    assert shown == saved
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.slow
def test_pictures_match_the_blocks(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plots: pip install 'confide[plots]'")
    made = draw(tmp_path)
    assert [path.name for path in made] == sorted(path.name for path in FOLDER.iterdir())
    assert {path.name: off for path in made if (off := unlike(FOLDER / path.name, path)) > MOST_UNLIKE} == {}
