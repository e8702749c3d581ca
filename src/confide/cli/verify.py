"""`confide verify`: whether a release is what it claims to be, and of a federation whose it is."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.federated import read_silo
from confide.cli.output import emit, say, warn
from confide.errors import InputError
from confide.evaluation import PrivateEvaluation
from confide.federated import FederatedCalibration, FederatedGroups, FederatedLevels
from confide.federated import verify as verify_federated
from confide.releases import Document, links, load, predecessors_of
from confide.support import read_text
from confide.watching import Watch


def verify(
    file: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help=f"{o.RELEASE} Or a private evaluation, or a watch.")
    ] = None,
    coordinator: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The coordinator's public file: demand this signature.")
    ] = None,
    answer: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A silo's answer: demand that it counts; repeat it.")
    ] = None,
    previous: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An earlier release: demand that it is in the chain; repeat it."),
    ] = None,
    calibration: o.SameRelease = None,
    as_json: o.AsJson = False,
) -> int:
    r"""Check a release: its claims, its chain, who signed it.

    Every claim is computed again from what the file states; a file that claims
    more than follows is refused (exit code 3). Of a federation it is said who
    signed the release and what its threshold was made from. No file shows
    that a threshold was drawn with noise: that rests on whoever ran the
    calibration. Exit code 5 if the release is not private, is not signed by
    --coordinator, an --answer does not count in it, or a --previous release is
    not what its chain says.

    Example:

      confide verify released.json --coordinator coordinator.json \
        --answer north-answer.json
    """
    path = o.only_one(file, calibration)
    released = load(path)
    head = f"claims: computed again, and they hold\n{released}"
    if not isinstance(released, FederatedCalibration | FederatedLevels | FederatedGroups):
        if coordinator is not None or answer:
            raise InputError(f"{str(path)!r} is no federated calibration: leave --coordinator and --answer out")
        what = "noisy counts" if isinstance(released, Watch | PrivateEvaluation) else "thresholds"
        found, wrong = _chain(released, previous or [])
        unsigned = (
            f"not signed: no signature vouches for the {what} themselves. Everything else was recomputed from the "
            "public choices"
        )
        return _told([head, unsigned, _untold(what), *found], [*_bare(released), *wrong], as_json=as_json)
    if previous:
        raise InputError(f"{str(path)!r} is a federated calibration, which renews none: leave --previous out")
    signer = None if coordinator is None else read_silo(coordinator)
    told = verify_federated(released, signer, [read_text(path) for path in answer or ()])
    return _told([head, *told.found, _untold("thresholds")], [*_bare(released), *told.wrong], as_json=as_json)


def _untold(what: str) -> str:
    """What no file can show, signed or not."""
    return f"not shown: that the {what} were drawn with noise; that rests on whoever ran the calibration"


def _bare(released: Document) -> list[str]:
    """What is wrong with a release without privacy, for those who are about to publish it."""
    privacy = released.privacy
    return [str(privacy)] if math.isinf(privacy.epsilon) and not privacy.concentrated_only else []


def _chain(released: Document, previous: list[Path]) -> tuple[list[str], Sequence[str]]:
    """Whether the earlier releases are those that the chain names: what was found, and what is wrong."""
    if not predecessors_of(released) and not previous:
        return [], []
    told = links(released, [load(path) for path in previous])
    return [f"chain: this is release {len(predecessors_of(released)) + 1}", *told.found], told.wrong


def _told(found: Sequence[str], wrong: Sequence[str], *, as_json: bool) -> int:
    """Print what was found, and what is wrong, and return the exit code."""
    if as_json:
        emit({"holds": not wrong, "found": [line for text in found for line in text.splitlines()], "wrong": wrong})
    else:
        for line in found:
            say(line)
    for line in wrong:
        warn(line)
    return CLAIM_FAILED if wrong else DONE
