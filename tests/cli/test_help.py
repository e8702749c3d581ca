"""Help: every option by its whole name, in few lines of 80 columns; groups alone; completion of the shell."""

import subprocess
import sys

import pytest

from confide.cli.app import app


def commands(command=None, path=()):
    command = app if command is None else command
    below = getattr(command, "commands", {})
    return [(path, command), *(one for name, sub in below.items() for one in commands(sub, (*path, name)))]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    ("path", "command"), commands(), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_help_fits_and_names_everything(confide_run, path, command):
    text = confide_run(*path, "--help").out
    assert max(map(len, text.splitlines())) <= 80
    words = text.translate(str.maketrans(",[]", "   ")).split()
    for parameter in command.params:
        names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
        assert set(names) <= set(words)
    assert "…" not in text
    assert "[bold]" not in text
    assert "\\[" not in text
    assert len(text.splitlines()) <= 155


def test_help_lists_the_arguments_that_set_takes(confide_run):
    names = confide_run("watch", "--help").out.partition("Names for --set:")[2].replace(",", " ").split()
    assert {"tolerance", "correct", "fingerprint"} <= set(names)
    assert not {"alpha", "epsilon"} & set(names)  # they are options


def test_the_list_of_commands_states_the_first_sentence_of_each():
    for name, command in app.commands.items():
        assert app.summary(name) == command.get_short_help_str(limit=200)


def test_help_imports_no_command():
    code = "import sys; from confide.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "confide.cli.app" in ran.stderr
    for name in ("numpy", "confide.support", "confide.cli.command"):
        assert f"'{name}'" not in ran.stderr
