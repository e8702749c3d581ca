"""Exclusive options, and options without those that they need, raise errors that name them."""

import click
import pytest

from confide.cli.app import app
from confide.cli.command import APART, BELONGS, concerns
from confide.cli.exit_codes import REFUSED, USAGE
from confide.cli.help import all_commands
from confide.errors import InputError

COMMANDS = {" ".join(words): command for words, command in all_commands(app) if not isinstance(command, click.Group)}
CODES = {click.UsageError: USAGE}


def options_of(path):
    return {str(one.name): one for one in COMMANDS[path].params}


def typed(options, names):
    """A command line with these and the required options."""
    words, arguments = [], []
    for name, one in options.items():
        if name in names or one.required:
            value = "x" if one.type.name in ("text", "path") else getattr(one.type, "choices", ["2"])[0]
            if isinstance(one, click.Argument):
                arguments.append(value)
            else:
                words += [one.opts[0]] if one.is_flag else [one.opts[0], value]
    return [*arguments, *words]


def said_of(one):
    return one.metavar if isinstance(one, click.Argument) else one.opts[0]


APART_PAIRS = [
    (rule, path, given, other)
    for rule in APART
    for path in COMMANDS
    if concerns(rule, path, options_of(path))
    for given in rule.given.split()
    for other in rule.without.split()
    if {given, other} <= set(options_of(path)) and given != other
]
LACKING = [
    (rule, path, given)
    for rule in BELONGS
    for path in COMMANDS
    if concerns(rule, path, options_of(path))
    for given in rule.given.split()
    if given in options_of(path)
]


@pytest.mark.slow
def test_exclusive_options_are_named_in_errors(confide_run, folder):
    for rule, path, given, other in APART_PAIRS:
        options = options_of(path)
        ran = confide_run(*path.split(), *typed(options, {given, other}))
        colon = ":" if rule.error is InputError else ""
        named = f"{said_of(options[other])}{colon} must be left out with {said_of(options[given])}: "
        turned = f"{said_of(options[given])}{colon} must be left out with {said_of(options[other])}: "
        assert ran.error.startswith((named, turned)), (path, given, other)
        assert any(one.why in ran.error for one in APART)
        assert ran.code == CODES.get(rule.error, REFUSED)
    assert list(folder.iterdir()) == []


def test_missing_required_options_are_named_in_errors(confide_run, folder):
    for rule, path, given in LACKING:
        options = options_of(path)
        if any(options[name].required for name in rule.to.split() if name in options):
            continue
        ran = confide_run(*path.split(), *typed(options, {given}))
        said = said_of(options[given])
        assert ran.error.startswith(f"{said} needs " if ran.code == USAGE else f"{said}: needs "), (path, given)
        assert ran.code in (USAGE, REFUSED)
    assert list(folder.iterdir()) == []
