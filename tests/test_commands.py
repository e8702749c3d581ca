"""Every command in documents or scripts is run before a change lands, by `nox -s smoke` or as its row states."""

import importlib
import re

import pytest

from benchmarks import small
from tests.commands import FOLDERS, IN_CI, ROOT, ROWS, files, named

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository, whose files git lists")


def test_every_command_that_is_named_has_a_row():
    """A new one: add a row to tests/commands.py, and see that the walk runs it in seconds."""
    places = named()
    assert {name: places[name] for name in places if name not in ROWS} == {}
    assert [name for name in ROWS if name not in places] == []


def test_every_program_has_a_row():
    """All commands that can be run, except those of tests and those that other programs start."""
    started = {"benchmarks/peers_worker.py", "examples/flower/simulate.py", "examples/nvflare_round.py"}  # or by a test
    checked = 0
    for path in files():
        if path.parts[0] in {*FOLDERS} - {"tests"} and path.suffix == ".py" and str(path) not in started:
            text = (ROOT / path).read_text(encoding="utf-8")
            if re.search(r"^if __name__ == ", text, flags=re.MULTILINE):
                module = ".".join(path.with_suffix("").parts).removesuffix(".__main__")
                starts = f"python -m {module}", f"python {path}"
                assert any(f"{name} ".startswith(f"{start} ") for name in ROWS for start in starts), path
                checked += 1
    assert checked > 10


def test_what_runs_elsewhere_runs_there():
    for name, row in ROWS.items():
        assert not (row.small and row.elsewhere), name
        there = row.elsewhere.partition(",")[0]
        if there in ROWS:
            assert not ROWS[there].elsewhere or ROWS[there] == IN_CI, f"{name}: {there} does not run either"
        elif there.startswith("tests/"):
            assert (ROOT / there).exists(), name
        else:
            assert not there.startswith(("make ", "nox ", "python ")), f"{name}: {there} is no row"


def test_continuous_integration_runs_what_it_should():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (default,) = re.findall(r"^nox.options.sessions = \[(.*)\]$", (ROOT / "noxfile.py").read_text(), flags=re.MULTILINE)
    runs = {f"make {target}" for target in re.findall(r"^make (\S+)", script, flags=re.MULTILINE)}
    sessions = re.findall(r"^\.venv/bin/nox -s (\S+)$", script, flags=re.MULTILINE)
    runs |= {f"nox -s {name}" for name in [*sessions, *re.findall(r"[a-z]+", default)]}
    assert ".venv/bin/nox &" in script
    assert sessions == ["extras", "smoke"]
    assert {name for name, row in ROWS.items() if row == IN_CI} == runs


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
