"""The library's messages in the words of the command line: an argument is called by the option that gives it."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

_GIVEN_BY = {
    "people": "person",
    "group_names": "groups",
    "answers": "answer",
    "silos": "silo",
    "silo reports": "silo_report",
    "methods": "allow",
    "peers": "peer",
    "missing": "arbitrary",
    "release": "calibration",
    "silo_reports": "silo_report",
}
"""The parameters of commands that stand for arguments of another name."""

_QUOTED = r"""(?<!\w)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""


def options_of(command: click.Command, words: Sequence[str]) -> dict[str, str]:
    """The options of the command that words of a command line name, by the arguments that they give."""
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.commands.get(word, command)
    own = {str(one.name): one.opts[0] for one in command.params if isinstance(one, click.Option)}
    return own | {argument: own[name] for argument, name in _GIVEN_BY.items() if name in own}


_AS_BEFORE = {"recalibrate": "calibrate"}
"""Commands that read a request off a release, and the command whose options said it when the release was made."""


def unknown_option(name: str, command: click.Command, commands: click.Command) -> str:
    """What is said of an option that a command lacks: that the release says it, or which options have a name like it.

    Examples
    --------
    >>> command = click.Command("cut", params=[click.Option(["--length"]), click.Option(["--again"])])
    >>> unknown_option("--lenght", command, command), unknown_option("--calibration", command, command)
    ('No such option: --lenght; did you mean --length?', 'No such option: --calibration')
    """
    earlier = options_of(commands, [_AS_BEFORE.get(str(command.name), "")])
    if name in earlier.values():
        return f"{name} must be left out: the release that is renewed says it, and the new one keeps it"
    known = {opt.lstrip("-"): opt for one in command.params if isinstance(one, click.Option) for opt in one.opts}
    typed = name.lstrip("-")
    alike = get_close_matches(typed, known, cutoff=0.65)
    if len(typed) > 2:
        alike = [one for one in known if one.startswith(typed[:4])] or alike
    meant = f"; did you mean {' or '.join(known[one] for one in alike)}?" if alike else ""
    return f"No such option: {name}{meant}"


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message in which options stand for arguments; what is quoted, such as a column or a file, stays as it is.

    A name that is also a word counts as an argument where messages speak of arguments: before "must", "belongs" or "=",
    and after "with".

    Examples
    --------
    >>> options = {"n": "--n", "n_min": "--n-min", "neighbors": "--neighbors", "rho": "--rho"}
    >>> in_options("n must be given under neighbors='replace_one'; found n_min=3 in column 'n_min'", options)
    "--n must be given under --neighbors replace_one; found --n-min 3 in column 'n_min'"
    >>> in_options("epsilon or rho must be given, and not both", options | {"epsilon": "--epsilon"})
    '--epsilon or --rho must be given, and not both'
    """
    if not options:
        return message
    name = "|".join(map(re.escape, sorted(options, key=len, reverse=True)))
    more = rf"(?:(?:, | and | or )(?:{name}))*"
    pattern = re.compile(
        rf"(?P<quoted>{_QUOTED})"
        rf"|\b(?P<set>{name})=(?P<value>{_QUOTED}|\[[^\]]*\]|[\w.+-]+)"
        rf"|(?:(?<=^)|(?<=; )|(?<=: ))(?P<subject>(?:{name}){more})(?= (?:must|belongs?)\b)"
        rf"|(?<=\bwith )(?P<other>{name})(?=[,;.]|$)"
        rf"|\b(?P<plain>(?=\w*_)(?:{name}))\b"
    )

    def reworded(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found["quoted"]
        if found["set"]:
            value = found["value"].strip("[]")
            if re.fullmatch(r"[\w.+:-]+", bare := value.strip("'\"")):  # else a shell needs the quotes, too
                value = bare
            return options[found["set"]] if value == "True" else f"{options[found['set']]} {value}"
        return re.sub(rf"\b(?:{name})\b", lambda word: options[word[0]], found[0])

    if "force" in options:
        message = message.replace("give overwrite=True", f"give {options['force']}")
    message = message.replace("; choose another name or give overwrite=True", "; choose another name")
    return pattern.sub(reworded, message)
