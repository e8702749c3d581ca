"""Every command in documents or scripts is run before a change lands, by `nox -s smoke` or as its row states."""

import importlib

import pytest

from benchmarks import small
from tests.commands import ROOT, ROWS, named

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository, whose files git lists")


@pytest.mark.slow
def test_every_command_that_is_named_has_a_row():
    """A new one: add a row to tests/commands.py, and see that the walk runs it in seconds."""
    places = named()
    assert {name: places[name] for name in places if name not in ROWS} == {}
    assert [name for name in ROWS if name not in places] == []


@pytest.mark.parametrize(("folder", "few"), [(str(ROOT), True), ("/elsewhere", False), (None, False)])
def test_the_small_form_is_for_the_copy_alone(folder, few, monkeypatch):
    """Exported and forgotten, the setting changes no numbers of documents."""
    monkeypatch.delenv("CONFIDE_SMALL", raising=False)
    if folder is not None:
        monkeypatch.setenv("CONFIDE_SMALL", folder)
    try:
        assert importlib.reload(small).small(1000, 1) == (1 if few else 1000)
    finally:
        monkeypatch.undo()
        importlib.reload(small)
