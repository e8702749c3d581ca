"""Page of a release, a plan, an evaluation, a watch, a ledger, or a plan of a federation."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from confide.core import Document, Plan, Release
from confide.errors import InputTypeError
from confide.evaluation import Evaluation
from confide.federated import FederatedPlan
from confide.ledger import Ledger
from confide.reports.ledger_page import ledger_section
from confide.reports.page import Page, page_of
from confide.reports.release_page import evaluation_of, evaluation_section, plan_section, release_section
from confide.reports.watch_page import watch_section
from confide.reports.words import protection
from confide.support import Section, describe, require, require_extra
from confide.watching import CorrectedRelease, Watch


def report(
    release: Document | Plan | Ledger | FederatedPlan,
    *,
    title: str | None = None,
    evaluation: Evaluation | str | Path | None = None,
    answers: Sequence[str] = (),
    ledger: Ledger | str | Path | None = None,
    file_name: str = "calibration.json",
) -> Page:
    """Write a release, a plan, an evaluation, a watch or a ledger as one self-contained HTML page.

    The page depends on data only through these arguments. It has pictures if `confide[plots]` is installed.

    Parameters
    ----------
    release
        A release of the library, a `Plan`, a plan of a federation, an `Evaluation`, a `Watch`, or a `Ledger`.
    title
        Heading of the page, 1 to 200 printable characters.
    evaluation
        An evaluation of this release, or a file from `confide evaluate --out`. The numbers of an evaluation without
        noise are not private, and the page says so. With a private evaluation the whole page may be published.
    answers
        For a federated calibration: messages of the silos, to show their answers.
    ledger
        The ledger that was charged for this release, or its path. The page then states how much budget was spent on the
        data set before the release and with it, and the limit.
    file_name
        File name of the release, for the command that checks it.

    Raises
    ------
    InputError, InputTypeError
        If the evaluation, the answers or the ledger belong to something else, or the title cannot be displayed.
    MissingExtraError
        If `confide[standard]` is not installed.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> page = confide.report(released, title="Triage")
    >>> page
    Page('Triage')
    >>> page.save("triage.html")  # doctest: +SKIP
    PosixPath('triage.html')
    """
    require_extra("a page", "standard", "jinja2")

    # A release has an evaluation, answers, a ledger and a file.
    if isinstance(release, Release) and not isinstance(release, CorrectedRelease):
        budget = Ledger(ledger, create=False) if isinstance(ledger, str | Path) else ledger
        section = release_section(release, evaluation_of(release, evaluation), answers, budget, file_name)
        return page_of(section, title, file=(file_name, release.to_json()))

    # Other values have none of these.
    for name, argument in {"evaluation": evaluation, "answers": answers, "ledger": ledger}.items():
        require(name, not argument, "must be left out: it belongs to one release")
    return page_of(_section(release), title)


def _section(value: object) -> Section:
    """The section of a value other than a release."""
    match value:
        case Ledger():
            return ledger_section(value)
        case Plan():
            return plan_section(value)
        case Watch():
            return watch_section(value)
        case CorrectedRelease():
            section = watch_section(value.watch)
            return replace(section, parts=(replace(describe(value), title="The thresholds in force"), *section.parts))
        case Evaluation():
            private = (protection(value.privacy),) if value.private else ()
            return Section("Evaluation", parts=(evaluation_section(value), *private))
        case FederatedPlan():
            return describe(value)
    raise InputTypeError("release", "must be a calibration, of any kind, or a plan", type(value).__name__)
