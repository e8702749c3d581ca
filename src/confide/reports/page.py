"""The page of a release, made and written."""

from collections.abc import Sequence
from pathlib import Path

from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, LevelEvaluation, load_evaluation
from confide.federated.report import SiloReport
from confide.releases.reading import Release
from confide.reports.release_page import release_page
from confide.support.files import refuse_existing, write_text

MOST_TITLE = 200


def write_report(
    release: Release,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    file_name: str = "calibration.json",
    evaluation: Evaluation | LevelEvaluation | str | Path | None = None,
    overwrite: bool = False,
    answers: Sequence[str] = (),
    silo_reports: Sequence[SiloReport] = (),
) -> str:
    """The page, which is also written to `path` if one is given. See `Calibration.report` and `release_page`."""
    check_title(title)
    if path is not None:
        refuse_existing(Path(path), overwrite=overwrite)
    if isinstance(evaluation, str | Path):
        evaluation = load_evaluation(evaluation)
    if evaluation is not None and not isinstance(evaluation, Evaluation | LevelEvaluation):
        raise InputTypeError(f"evaluation must be an Evaluation or a file name; found {type(evaluation).__name__}")
    html = release_page(
        release,
        title=title,
        file_name=file_name,
        evaluation=evaluation,
        answers=answers,
        silo_reports=silo_reports,
    )
    if path is not None:
        write_text(Path(path), html, overwrite=overwrite)
    return html


def check_title(title: str | None) -> None:
    """Refuse a title that no heading can show."""
    if title is not None and not isinstance(title, str):
        raise InputTypeError(f"title must be a text; found {type(title).__name__}")
    if title is not None and not (0 < len(title) <= MOST_TITLE and title.isprintable()):
        raise InputError(f"title must have 1 to {MOST_TITLE} printable characters")
