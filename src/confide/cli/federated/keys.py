"""`confide federated keygen` and `public`: who speaks, and with how many records."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.federated.arguments import Keys, NamedLedger, identity_of
from confide.cli.federated.words import silo_rows
from confide.cli.output import check_output, say
from confide.cli.parameters import command
from confide.errors import InputError
from confide.federated import SiloKeys
from confide.ledger import file_of
from confide.support import Kind, OutputExistsError, aligned, write_text

Size = Annotated[int | None, typer.Option(help="Number of calibration records, if it may be public.", min=1)]


def keygen(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the silo or of the coordinator.")],
    keys: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the private keys.")],
    public: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the public file.")],
    size: Size = None,
    ledger: NamedLedger = None,
) -> None:
    r"""Make the keys of a silo, and the public file to send around.

    Compare the fingerprints by another channel, for example by phone: all
    trust in the files rests on the public files being the right ones.
    `confide show FILE` prints the same digits of a file that you received.
    With --ledger, as every silo of a secure sum should have it, a copy of the
    keys cannot answer a plan a second time; all silos need version 0.3 then.

    Example:

      confide federated keygen north --keys north.key \
        --public north.json --size 300 --ledger north.db
    """
    if keys.exists():
        raise OutputExistsError(
            f"output {str(keys)!r} exists already, and keys are never replaced; choose another name, or issue the "
            "public file anew with these keys: confide federated public"
        )
    check_output(public, Kind.SILO, keys, force=False)
    if not keys.parent.is_dir():
        raise InputError(f"output {str(keys)!r} cannot be written: its folder does not exist")
    made, named = SiloKeys.generate(name), identity_of(ledger)
    made.save(keys)
    silo = made.public(size, ledger=named)
    write_text(public, silo.to_json(), overwrite=False)
    say(f"keys: {keys} (private)\npublic: {public}\n{aligned(silo_rows(silo))}")


@command
def public(*, keys: Keys, size: Size = None, ledger: NamedLedger = None, output: o.Output) -> None:
    r"""Issue the public file anew, with the same keys and another size or ledger.

    The fingerprint stays the same, so nobody has to compare it again: the
    size is signed by the key that the fingerprint covers.

    Example:

      confide federated public --keys north.key --size 301 \
        --ledger north.db --out north.json --force
    """
    output.check(Kind.SILO, keys, None if ledger is None else file_of(ledger))
    silo = SiloKeys.load(keys).public(size, ledger=identity_of(ledger))
    output.write(silo.to_json(), "public")
    say(aligned(silo_rows(silo)))
