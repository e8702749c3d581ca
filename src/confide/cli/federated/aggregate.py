"""`confide federated aggregate`: one threshold from all answers."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.federated.arguments import PlanFile, read_messages
from confide.cli.federated.words import spread
from confide.cli.output import heard, say, warn
from confide.cli.parameters import command
from confide.errors import CoverageWarning
from confide.federated import SiloKeys, replies
from confide.federated import aggregate as aggregate_answers
from confide.releases import everything, parts_of
from confide.support import Kind, kind_of, read_text


@command
def aggregate(
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWER...", help="The silos' answers, and openers' parts where there are.")
    ],
    *,
    plan: PlanFile,
    output: o.Output,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The coordinator's private keys: sign, for `confide verify`."),
    ] = None,
    drop_refused: Annotated[
        bool, typer.Option("--drop-refused", help="Leave unusable answers out and say so, instead of stopping.")
    ] = False,
) -> None:
    r"""Make the calibration from the answers; it works with `confide predict`.

    Example:

      confide federated aggregate north-answer.json south-answer.json \
        --plan plan.json --keys coordinator.key --out released.json
    """
    output.check(Kind.RELEASE, *answers, plan, keys)
    parts = [path for path in answers if kind_of(path) is Kind.PART]
    sent = [path for path in answers if path not in parts]
    text, messages = read_text(plan), read_messages(sent, Kind.ANSWER, drop_refused=drop_refused)
    with heard(CoverageWarning) as caught:
        released = aggregate_answers(
            text,
            messages,
            parts=read_messages(parts, Kind.PART),
            keys=None if keys is None else SiloKeys.load(keys),
            drop_refused=drop_refused,
        )
    for name, part in parts_of(released).items():
        if part.threshold == float("inf"):
            of_part = f" of {name}" if name else ""
            warn(f"the threshold{of_part} is +inf: {everything(part.score)}; more silos have to answer")
    output.write(released.to_json(), f"{released}\nsaved")
    if line := spread(replies(text, messages, drop_refused=drop_refused)):
        say(line)
    for one in caught:
        warn(str(one.message))
