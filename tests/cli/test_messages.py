"""The library's messages on the command line: they name the option to give, and leave quoted parts unchanged."""

import click
import pytest

from confide.cli.app import app
from confide.cli.run import in_options, options_of

COMMAND = app


@pytest.mark.parametrize(
    ("words", "message", "says"),
    [
        (
            "calibrate",
            "n must be given under neighbors='replace_one'",
            "--n must be given under --neighbors replace_one",
        ),
        ("calibrate", "n must be 3; found n=2", "--n must be 3; found --n 2"),
        ("federated plan", "options: n_min must be positive", "options: --n-min must be positive"),
        ("recalibrate", "epsilon or rho must be given", "--epsilon or --rho must be given"),
        (
            "evaluate",
            "records_per_person must be left out with people",
            "--records-per-person must be left out with --person",
        ),
        (
            "predict",
            "column: 'p' holds lists; leave it out with keep, or",
            "column: 'p' holds lists; leave it out with --keep, or",
        ),
        ("predict", "classes must fit; pass classes=[...] in order", "--classes must fit; pass --classes ... in order"),
        ("predict", "output 'x' exists already; give overwrite=True", "output 'x' exists already; give --force"),
        ("evaluate", "by and group_names must be given together", "--by and --groups must be given together"),
        ("evaluate", "release must be a calibration", "--calibration must be a calibration"),
        ("report", "evaluation and answers must", "--evaluation and --answer must"),
        (
            "watch",
            "reference must be left out without unlabelled=True",
            "--reference must be left out without --unlabelled",
        ),
        ("predict", "groups must be integers", "groups must be integers"),
        ("report", "answers must be left out", "--answer must be left out"),
        ("federated plan", "silos must differ", "--silo must differ"),
        ("ledger limit", "epsilon must be positive", "epsilon must be positive"),
        ("ledger limit", "dp_delta must be positive", "--dp-delta must be positive"),
    ],
)
def test_arguments_become_options(words, message, says):
    assert in_options(message, options_of(COMMAND, words.split())) == says


@pytest.mark.parametrize(
    "message",
    [
        "column 'n_min' is not in file 'n must be.csv'; its columns are 'by', 'it\\'s n_min', \"o'n_min\"",
        "the score must be another one",
        "1 of the records must have a label; the first at row 3",
        "a table with no label, and a person's order",
    ],
)
def test_words_and_quotations_are_not_changed(message):
    assert in_options(message, options_of(COMMAND, ["calibrate"])) == message


def test_arguments_of_every_command_have_their_option():
    """For every command, a message about an argument names its option."""
    seen = 0
    for path, command in commands(COMMAND):
        for one in command.params:
            if isinstance(one, click.Option) and one.name != "help":
                said = in_options(f"{one.name} must be given", options_of(COMMAND, path))
                assert said == f"{one.opts[0]} must be given", path
                seen += 1
    assert seen > 100


def commands(command, path=()):
    for name, one in command.commands.items():
        yield from commands(one, (*path, name)) if isinstance(one, click.Group) else [((*path, name), one)]
