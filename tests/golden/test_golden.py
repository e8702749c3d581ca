"""Texts that users read equal the reviewed files, compared as a whole."""

import pytest

from tests.golden import FOLDER, texts

TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_text_equals_its_file(name):
    """To change words on purpose, run `python -m tests.golden` and look at `git diff`."""
    assert TEXTS[name]() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_is_compared():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(TEXTS)
