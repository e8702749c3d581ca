"""Help: every option by its whole name, in few lines of 80 columns; groups alone; completion of the shell."""

import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import pytest

from confide.cli import options as names
from confide.cli.app import app
from confide.cli.options import OPTIONS
from confide.core import RENEWED, RULES
from confide.evaluation import PrivateRequest
from confide.federated import METHODS, PlanChoices
from confide.mechanisms import NEIGHBORS
from confide.tables import DIALECTS
from confide.watching import FirstLook


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


def test_names_that_help_states_are_those_of_the_api():
    """`confide.cli.options` states them, so that help imports nothing that computes."""
    of_request = {field.name for field in fields(PrivateRequest)} - {"ledger", "dataset", "again"}
    assert set(names.PRIVATE_NAMES) == of_request
    assert set(names.LOOK_NAMES) == set(FirstLook.__annotations__)
    assert set(names.RENEWED) > set(RENEWED)
    assert set(names.PLAN_NAMES) == set(get_type_hints(PlanChoices)) - {"by", "names"} | {"method"}
    assert names.METHODS == METHODS
    assert (NEIGHBORS, RULES, tuple(DIALECTS)) == (names.NEIGHBORS, names.RULES, names.DIALECTS)


def test_every_option_has_its_row():
    used = {parameter.name for _, command in commands() for parameter in command.params}
    assert used - {"verbose", "version"} == set(OPTIONS)


@pytest.mark.slow
def test_help_of_every_command_imports_nothing_that_computes():
    code = (
        "import sys; from confide.cli import main\n"
        "for line in sys.argv[1:]: main([*line.split(), '--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    lines = [" ".join(path) for path, _ in commands()]
    ran = subprocess.run([sys.executable, "-c", code, *lines], capture_output=True, text=True, check=True)
    loaded = {name for name in ran.stderr.split() if name.startswith("confide.")}
    assert {name for name in loaded if not name.startswith("confide.cli")} == {"confide.errors"}
    assert not {"numpy", "pyarrow", "duckdb", "msgspec"} & set(ran.stderr.split())
