"""Help: every option by its whole name, in few lines of 80 columns; groups alone; completion of the shell."""

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
        if getattr(parameter, "hidden", False):
            continue
        names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
        assert set(names) <= set(words)
    assert "…" not in text
    assert "[bold]" not in text
    assert "\\[" not in text
    assert len(text.splitlines()) <= 140


def test_options_stand_in_their_panels(confide_run):
    text = confide_run("calibrate", "--help").out
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[:5] == ["Arguments:", "Columns:", "Coverage promise:", "Privacy:", "Threshold:"]
    example = (
        "    confide calibrate records.parquet --probabilities 'p_*' --label label \\\n      --alpha 0.1 --epsilon 1"
    )
    assert example in text


@pytest.mark.parametrize("group", [(), ("ledger",), ("federated",)])
def test_a_group_alone_shows_what_there_is(confide_run, group):
    """To ask what there is is no mistake; a command that lacks something is one."""
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
def test_the_shell_is_told_how_to_complete(confide_run, monkeypatch, words, found):
    monkeypatch.setenv("_CONFIDE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    told = confide_run()
    assert (told.code, told.err) == (0, "")
    assert told.out.split() == found


def test_the_script_for_the_shell(confide_run, monkeypatch):
    monkeypatch.setenv("_CONFIDE_COMPLETE", "source_bash")
    told = confide_run()
    assert told.code == 0
    assert "_CONFIDE_COMPLETE=complete_bash" in told.out


def test_several_levels_are_planned_one_by_one(confide_run):
    refused = confide_run("plan", "--alpha", "0.2,0.1", "--epsilon", 1)
    assert refused.code == 2
    assert (
        "`confide calibrate` divides --epsilon evenly among several: plan each of them with its share" in refused.error
    )
    assert "several, as 0.2,0.1" not in " ".join(confide_run("plan", "--help").out.split())
    assert "several, as 0.2,0.1" in " ".join(confide_run("calibrate", "--help").out.split())
