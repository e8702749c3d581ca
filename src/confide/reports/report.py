"""Page of a release, a plan, a watch or a ledger."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from confide.core import Document, Plan, Release
from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation
from confide.ledger import Ledger
from confide.reports.ledger_page import ledger_page
from confide.reports.page import Page, check_title
from confide.reports.plan_page import plan_page
from confide.reports.release_page import release_page
from confide.reports.watch_page import watch_page
from confide.support import needs_extra
from confide.watching import CorrectedRelease, Watch

_ALONE: Mapping[type, str] = MappingProxyType(
    {
        Plan: "a plan does not use records",
        Ledger: "it belongs to one release",
        Watch: "a watch has its own looks",
        CorrectedRelease: "a watch has its own looks",
    }
)
"""Types whose page takes no further arguments, with the reason."""


def report(
    release: Document | Plan | Ledger,
    *,
    title: str | None = None,
    evaluation: Evaluation | str | Path | None = None,
    answers: Sequence[str] = (),
    ledger: Ledger | str | Path | None = None,
    file_name: str = "calibration.json",
) -> Page:
    """Write a release, a plan, a watch or a ledger as one self-contained HTML page.

    The page depends on data only through these arguments.

    Parameters
    ----------
    release
        A release of the library, a `Plan`, a `Watch`, or a `Ledger`.
    title
        Heading of the page, 1 to 200 printable characters.
    evaluation
        An evaluation of this release, or a file from `confide evaluate --out`. Its numbers are not private, and the
        page says so. Those of a private evaluation are private, and then the whole page may be published.
    answers
        For a federated calibration: messages of the silos, to show their answers.
    ledger
        The ledger that was charged for this release, or its path. The page then reports what the data had spent before
        the release and with it, and the limit.
    file_name
        File name of the release, for the command that checks it.

    Raises
    ------
    InputError, InputTypeError
        If the evaluation, the answers or the ledger belong to something else, or the title cannot be
        displayed.
    MissingExtraError
        If `confide[standard]` is not installed.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> page = confide.report(released, title="Triage")
    >>> page
    Page('Triage', ... kB of HTML)
    >>> page.save("triage.html")  # doctest: +SKIP
    PosixPath('triage.html')
    """
    with needs_extra("a page", "standard", "jinja2"):
        pass
    check_title(title)
    belongs = {
        "evaluation": evaluation is not None,
        "answers": bool(answers),
        "ledger": ledger is not None,
    }
    given = next((name for name, there in belongs.items() if there), None)
    for kind, why in _ALONE.items():
        if isinstance(release, kind) and given is not None:
            raise InputError(given, f"must be left out: {why}")
    if isinstance(release, Plan):
        return plan_page(release, title=title)
    if isinstance(release, Ledger):
        return ledger_page(release, title=title)
    if isinstance(release, CorrectedRelease):
        release = release.watch
    if isinstance(release, Watch):
        return watch_page(release, title=title)
    if isinstance(release, Evaluation):
        raise InputError("release", "must be the calibration", "Evaluation", "give it as evaluation")
    if not isinstance(release, Release):
        raise InputTypeError("release", "must be a calibration, of any kind, or a plan", type(release).__name__)
    if isinstance(evaluation, str | Path):
        evaluation = Evaluation.load(evaluation)
    if evaluation is not None and not isinstance(evaluation, Evaluation):
        raise InputTypeError("evaluation", "must be an Evaluation or a file name", type(evaluation).__name__)
    if isinstance(ledger, str | Path):
        ledger = Ledger(ledger, create=False)
    return release_page(release, title, file_name, evaluation, answers, ledger)
