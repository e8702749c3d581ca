"""`confide federated list`: whose answers are summed, and what is asked of every opener."""

import json
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.federated.arguments import Keys, PlanFile, read_messages
from confide.cli.output import say
from confide.cli.parameters import command
from confide.errors import InputError
from confide.federated import DealtVectors, FederatedPlan, SiloKeys, openings
from confide.support import Kind, read_text, write_text


@command
def list_answers(
    answers: Annotated[list[Path], typer.Argument(metavar="ANSWER...", help="The silos' answers.")],
    *,
    plan: PlanFile,
    keys: Keys,
    out_folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write a file for every opener; made if new.")
    ],
    drop_refused: Annotated[
        bool, typer.Option("--drop-refused", help="Leave unusable answers out and say so, instead of stopping.")
    ] = False,
) -> None:
    r"""List the answers of a sum with dropouts: a file for every opener.

    Make the list once, when everybody who will answer has answered: silos help
    to open one list of a session. Send every opener the file with its name,
    also if it has not answered; each sends back its part, for aggregate.

    Example:

      confide federated list *-answer.json --plan plan.json \
        --keys coordinator.key --out-folder openings
    """
    text, told = read_text(plan), read_messages(answers, Kind.ANSWER, drop_refused=drop_refused)
    read, _ = FederatedPlan.read(text)
    files = {
        out_folder / f"{name}.json": opening
        for name, opening in openings(text, told, SiloKeys.load(keys), drop_refused=drop_refused).items()
    }
    for path, opening in files.items():
        if path.exists() and read_text(path) != opening:
            raise InputError(
                f"output {str(path)!r} holds another list or another file; silos open one list of a session: send "
                "the files that are there, or choose another folder"
            )
    try:
        out_folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"output {str(out_folder)!r} cannot be written: {error.strerror}") from None
    for path, opening in files.items():
        if not path.exists():
            write_text(path, opening, overwrite=False)
    assert isinstance(read.protocol, DealtVectors)  # else there is no list
    counted = {name for name, _ in json.loads(next(iter(files.values())))["content"]["counted"]}
    absent = ", ".join(silo.name for silo in read.silos if silo.name not in counted)
    say(f"on the list: {len(counted)} of {len(read.silos)} silos{f', without {absent}' if absent else ''}")
    say(f"openings: {out_folder}, a file for each of {len(files)} openers; {read.protocol.needed} of them must help")
