"""Commands that write documents about releases: `confide report` and `card`."""

from pathlib import Path
from typing import Any

from confide.cli.command import command
from confide.cli.output import print_text
from confide.cli.values import Output
from confide.core import load, load_release
from confide.evaluation import Evaluation
from confide.ledger import file_of
from confide.support import FileKind, card_or_page, read_text


@command("report")
def report(
    *,
    path: Path,
    evaluation: Path | None = None,
    title: str | None = None,
    answers: tuple[Path, ...] = (),
    ledger: str | None = None,
    output: Output,
) -> None:
    """Write an HTML page about a release: promise, privacy, cost, provenance.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The page is one HTML file that
    loads nothing; without --evaluation it contains nothing about the records
    except the release. With --ledger it states the budget spent before and
    with this release.

    Example:

      confide report cal.json --out report.html
    """
    from confide.reports import report as make_report

    output.check(FileKind.PAGE, path, evaluation, file_of(ledger), *answers)
    measured = None if evaluation is None else Evaluation.load(evaluation)
    released = load(path)
    page = make_report(
        released,
        title=title,
        file_name=path.name,
        evaluation=measured,
        answers=[read_text(answer) for answer in answers],
        ledger=ledger,
    )
    output.save(page.html)
    if measured is not None:
        print_text(_may_be_published("page", released, measured))


def _may_be_published(noun: str, released: Any, measured: Evaluation | None) -> str:
    """Whether a page or a card may be published, in a sentence."""
    if measured is not None and not measured.private:
        return f"The {noun} shows numbers from labelled records: this part is not private."
    public = released.privacy.is_private
    what = "only the release" if measured is None else "a private evaluation"
    return f"The {noun} shows {what}{f': the whole {noun} may be published' if public else ''}."


@command("card")
def card(
    *,
    path: Path,
    evaluation: Path | None = None,
    title: str | None = None,
    task: str | None = None,
    output: Output,
) -> None:
    """Write a model card of a release, with metadata for the Hugging Face Hub.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The card is Markdown that
    begins with YAML (`model-index`): guaranteed coverage, epsilon, and with
    --evaluation coverage with its interval. With a name that ends in .html it
    is a page.

    Example:

      confide card released.json --evaluation evaluation.json --out README.md
    """
    from confide.reports import card as make_card

    output.check(card_or_page(output.out), path, evaluation)
    measured = None if evaluation is None else Evaluation.load(evaluation)
    released = load_release(path)
    made = make_card(released, evaluation=measured, title=title, task=task, file_name=path.name)
    made.save(output.out, overwrite=output.force)
    print_text(f"saved: {output.out}")
    print_text(_may_be_published("card", released, measured))
