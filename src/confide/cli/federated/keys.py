"""`confide federated keygen`: who speaks."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.output import check_output, say
from confide.federated import SiloKeys
from confide.support import Kind, write_text


def keygen(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the silo or of the coordinator.")],
    keys: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the private keys.")],
    public: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the public file.")],
    size: Annotated[int | None, typer.Option(help="Number of calibration records, if it may be public.", min=1)] = None,
) -> None:
    r"""Make the keys of a silo, and the public file to send around.

    Compare the fingerprints by another channel, for example by phone: all
    trust in the files rests on the public files being the right ones.

    Example:

      confide federated keygen north --keys north.key \
        --public north.json --size 300
    """
    check_output(public, Kind.SILO, keys, force=False)
    made = SiloKeys.generate(name)
    made.save(keys)
    write_text(public, made.public(size).to_json(), overwrite=False)
    say(f"keys: {keys} (private)\npublic: {public}\nfingerprint: {made.public().signing[:16]}")
