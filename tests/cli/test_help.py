"""Help: every option by its whole name, in few lines of 80 columns; groups alone; completion of the shell."""

import re

import pytest

from confide.cli.app import app
from confide.cli.exit_codes import USAGE


def commands(command=None, path=()):
    command = app if command is None else command
    below = getattr(command, "commands", {})
    return [(path, command), *(one for name, sub in below.items() for one in commands(sub, (*path, name)))]


def defined(text):
    """The options that begin a row."""
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    ("path", "command"), commands(), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_help_fits_and_names_everything(confide_run, path, command):
    short = confide_run(*path, "--help").out
    hidden = "--help-all" in short
    text = confide_run(*path, "--help-all").out if hidden else short
    assert set(defined(short)) - {"--help-all"} <= set(defined(text))
    assert len(defined(short)) <= 20
    assert max(map(len, text.splitlines())) <= 80
    words = text.translate(str.maketrans(",[]", "   ")).split()
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
        assert set(names) <= set(words)
    assert "…" not in text
    assert "[bold]" not in text
    assert "\\[" not in text
    assert len(text.splitlines()) <= 155


def test_options_stand_in_their_panels(confide_run):
    text = confide_run("calibrate", "--help-all").out
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[:5] == ["Arguments:", "Columns:", "Coverage guarantee:", "Privacy:", "Threshold:"]
    example = (
        "    confide calibrate records.parquet --probabilities 'p_*' --label label \\\n      --alpha 0.1 --epsilon 1"
    )
    assert example in text


@pytest.mark.parametrize("group", [(), ("ledger",), ("federated",)])
def test_a_group_without_a_command_shows_its_help(confide_run, group):
    """A group without a command is valid; a command without a required option is an error."""
    alone = confide_run(*group)
    assert (alone.code, alone.err) == (0, "")
    assert alone.out == confide_run(*group, "--help").out
    assert f"Usage: {' '.join(['confide', *group])} [OPTIONS] COMMAND" in alone.out
    assert confide_run("calibrate").code == 2


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("confide cal", ["calibrate"]),
        ("confide ledger ex", ["export"]),
        ("confide calibrate --by", ["--by", "--by-class"]),
    ],
)
def test_shell_completion_of_words(confide_run, monkeypatch, words, found):
    monkeypatch.setenv("_CONFIDE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    output = confide_run()
    assert (output.code, output.err) == (0, "")
    assert [word.removeprefix("plain,") for word in output.out.split()] == found


def test_the_script_for_the_shell(confide_run, monkeypatch):
    monkeypatch.setenv("_CONFIDE_COMPLETE", "bash_source")
    output = confide_run()
    assert output.code == 0
    assert "_CONFIDE_COMPLETE=bash_complete" in output.out


def test_several_levels_are_planned_one_by_one(confide_run):
    refused = confide_run("plan", "--alpha", "0.2,0.1", "--epsilon", 1)
    assert refused.refused == (USAGE, "--alpha")
    assert "several, such as 0.2,0.1" not in " ".join(confide_run("plan", "--help").out.split())
    assert "several, such as 0.2,0.1" in " ".join(confide_run("calibrate", "--help").out.split())


def test_help_shows_everyday_options_and_mentions_help_all(confide_run):
    """About ten options; a small command shows all options and has no --help-all."""
    text = confide_run("calibrate", "--help").out
    assert defined(text) == [
        *("--probabilities", "--prediction", "--label", "--target", "--alpha", "--epsilon", "--ledger", "--dataset"),
        *("--out", "--force", "--json", "--help", "--help-all"),
    ]
    assert "--help-all  Show all 61 arguments and options, and exit." in text
    every = {path: command for path, command in commands() if not hasattr(command, "commands")}
    for path, command in every.items():
        assert len(command.everyday) <= 16, path
        assert all(one in command.everyday for one in command.params if one.required and not one.hidden)
    assert "--help-all" not in confide_run("show", "--help").out
    assert confide_run("show", "--help-all").code == 2
