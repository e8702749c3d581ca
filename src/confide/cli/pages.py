"""Commands that write documents about releases, `confide report` and `card`; and `demo`, which makes one."""

from typing import Any

from confide.cli.commands import Card, Demo, Report
from confide.cli.output import print_text
from confide.core import load, load_release
from confide.evaluation import Evaluation
from confide.ledger import file_of
from confide.support import FileKind, card_or_page, read_text


def report(asked: Report) -> None:
    """Write the page."""
    from confide.reports import report as make_report

    asked.output.check(FileKind.PAGE, asked.path, asked.evaluation, file_of(asked.ledger), *asked.answers)
    evaluation = None if asked.evaluation is None else Evaluation.load(asked.evaluation)
    released = load(asked.path)
    page = make_report(
        released,
        title=asked.title,
        file_name=asked.path.name,
        evaluation=evaluation,
        answers=[read_text(answer) for answer in asked.answers],
        ledger=asked.ledger,
    )
    asked.output.save(page.html)
    if evaluation is not None:
        print_text(_may_be_published("page", released, evaluation))


def _may_be_published(noun: str, released: Any, evaluation: Evaluation | None) -> str:
    if evaluation is not None and not evaluation.private:
        return f"The {noun} shows numbers from labelled records: this part is not private."
    public = released.privacy.is_private
    what = "only the release" if evaluation is None else "a private evaluation"
    return f"The {noun} shows {what}{f': the whole {noun} may be published' if public else ''}."


def card(asked: Card) -> None:
    """Write the card."""
    from confide.reports import card as make_card

    asked.output.check(card_or_page(asked.output.out), asked.path, asked.evaluation)
    evaluation = None if asked.evaluation is None else Evaluation.load(asked.evaluation)
    released = load_release(asked.path)
    written = make_card(released, evaluation=evaluation, title=asked.title, task=asked.task, file_name=asked.path.name)
    written.save(asked.output.out, overwrite=asked.output.force)
    print_text(f"saved: {asked.output.out}")
    print_text(_may_be_published("card", released, evaluation))


def demo(asked: Demo) -> None:
    """Run the example."""
    from confide.demo import run

    print_text(run(asked.out, force=asked.force))
