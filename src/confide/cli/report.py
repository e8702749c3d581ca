"""`confide report`: a release as a page for people."""

import math
from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.output import say
from confide.cli.parameters import command
from confide.evaluation import PrivateEvaluation, load_evaluation
from confide.ledger import file_of
from confide.releases import load
from confide.support import Kind, read_text


@command
def report(
    file: Annotated[Path | None, typer.Argument(metavar="RELEASE", help=o.RELEASE)] = None,
    *,
    calibration: o.SameRelease = None,
    evaluation: Annotated[
        Path | None,
        o.content(
            "FILE",
            "What `confide evaluate --out FILE` wrote for this release; private if it had --epsilon.",
        ),
    ] = None,
    title: Annotated[str | None, o.content("TEXT", "Heading of the page.")] = None,
    answer: Annotated[
        list[Path] | None, o.content("FILE", "Federated: a silo's answer, to show it; repeat it.")
    ] = None,
    silo_report: Annotated[
        list[Path] | None, o.content("FILE", "Federated: a silo's private estimate of its coverage; repeat it.")
    ] = None,
    ledger: Annotated[
        str | None,
        o.content(
            "LEDGER", "What was charged for it, and spent before and since: a file, or postgresql://ROLE@HOST/DB."
        ),
    ] = None,
    output: o.Output,
) -> None:
    """Write a page that people can read: promise, protection, price, making.

    RELEASE is a file that `confide calibrate` or `confide federated aggregate`
    wrote, or one of several thresholds. Every claim is computed again first.
    The page is one HTML file that loads nothing; without --evaluation it holds
    nothing about the records but the release. With --ledger it says what the
    data had spent before and with it.

    Example:

      confide report cal.json --out report.html
    """
    from confide.federated import SiloReport
    from confide.reports import report as make_report

    path = o.only_one(file, calibration)
    output.check(Kind.PAGE, path, evaluation, file_of(ledger), *(answer or ()), *(silo_report or ()))
    measured = None if evaluation is None else load_evaluation(evaluation)
    released = load(path)
    page = make_report(
        released,
        title=title,
        file_name=path.name,
        evaluation=measured,
        answers=[read_text(path) for path in answer or []],
        ledger=ledger,
        silo_reports=[SiloReport.load(path) for path in silo_report or []],
    )
    output.write(page.html)
    if isinstance(measured, PrivateEvaluation):
        protected = released.privacy.concentrated_only or not math.isinf(released.privacy.epsilon)
        whole = "" if not protected else ": all of it may be published"
        say(f"The page shows a private evaluation{whole}.")
    elif measured is not None:
        say("The page shows numbers from labelled records: that part is not private.")
