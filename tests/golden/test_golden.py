"""Words that users read are those that were looked at: one file for each, compared as a whole."""

import pytest

from tests.golden import FOLDER, texts

TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_words_are_those_of_the_file(name):
    """Where words are meant to change: `python -m tests.golden` writes the files, and `git diff` shows them."""
    assert TEXTS[name]() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_is_compared():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(TEXTS)
