"""`confide federated own`: what a silo may promise its own patients from the common round."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.parameters import command
from confide.errors import InputError
from confide.federated import FederatedCalibration, own_share
from confide.releases import load_release
from confide.support import Kind, read_text


@command
def own(
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="The silo's answer, as it was sent.")],
    *,
    calibration: Annotated[Path, typer.Option(metavar="FILE", help="What aggregate wrote.")],
    output: o.Output,
) -> None:
    r"""Make a silo's own calibration from the common round, for nothing.

    The larger of the common threshold and of what the silo answered. It
    covers new records of this silo as stated, whatever the other silos are
    like. No records are read and nothing is charged: both files are out
    already. Of a sum nothing of one silo is known; see `calibrate`.

    Example:

      confide federated own north-answer.json \
        --calibration released.json --out north-own.json
    """
    output.check(Kind.RELEASE, answer, calibration)
    released = load_release(calibration)
    if not isinstance(released, FederatedCalibration):
        raise InputError(f"calibration {str(calibration)!r} must be one threshold that `federated aggregate` wrote")
    made = own_share(released, read_text(answer))
    output.write(made.to_json(), f"{made}\nsaved")
