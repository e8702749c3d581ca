"""`confide report`: a release as a page for people."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.output import check_output, say
from confide.releases import load_release
from confide.support import read_text

Released = Annotated[
    Path,
    typer.Argument(metavar="CALIBRATION", help="A file that `confide calibrate` or `federated aggregate` wrote."),
]
EvaluationFile = Annotated[
    Path | None,
    typer.Option(
        "--evaluation",
        metavar="FILE",
        rich_help_panel="Content",
        help="What `confide evaluate --out FILE` wrote for this calibration. [bold]Its numbers are not private.[/bold]",
    ),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", rich_help_panel="Content", help="Heading of the page.")]
Answers = Annotated[
    list[Path] | None,
    typer.Option(
        "--answer", metavar="FILE", rich_help_panel="Content", help="Federated: a silo's answer, to show it; repeat it."
    ),
]
SiloReports = Annotated[
    list[Path] | None,
    typer.Option(
        "--silo-report",
        metavar="FILE",
        rich_help_panel="Content",
        help="Federated: a silo's private estimate of its coverage; repeat it.",
    ),
]


def report(
    calibration: Released,
    *,
    evaluation: EvaluationFile = None,
    title: Title = None,
    answer: Answers = None,
    silo_report: SiloReports = None,
    out: o.Out,
    force: o.Force = False,
) -> None:
    """Write a page that people can read: promise, protection, price, making.

    CALIBRATION is a file that `confide calibrate` or `confide federated
    aggregate` wrote, or one of several thresholds. Every claim is computed
    again first. The page is one HTML file that loads nothing; without
    --evaluation it holds nothing about the records but the calibration.

    Example:

      confide report cal.json --out report.html
    """
    from confide.federated import SiloReport
    from confide.reports import report as make_report

    check_output(out, force=force)
    page = make_report(
        load_release(calibration),
        title=title,
        file_name=calibration.name,
        evaluation=evaluation,
        answers=[read_text(path) for path in answer or []],
        silo_reports=[SiloReport.load(path) for path in silo_report or []],
    )
    page.save(out, overwrite=force)
    say(f"saved: {out}")
    if evaluation is not None:
        say("The page shows numbers from labelled records: that part is not private.")
