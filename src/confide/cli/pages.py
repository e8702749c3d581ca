"""Commands that write documents about releases, `confide report` and `card`; and `demo`, which makes one."""

from typing import Any

from confide.cli.commands import Card, Demo, Report
from confide.cli.output import print_text
from confide.core import load, load_release
from confide.evaluation import Evaluation
from confide.ledger import file_of
from confide.support import FileKind, card_or_page, read_text


def report(options: Report) -> None:
    """Write the page."""
    from confide.reports import report as make_report

    options.output.check(FileKind.PAGE, options.path, options.evaluation, file_of(options.ledger), *options.answers)
    evaluation = None if options.evaluation is None else Evaluation.load(options.evaluation)
    released = load(options.path)
    page = make_report(
        released,
        title=options.title,
        file_name=options.path.name,
        evaluation=evaluation,
        answers=[read_text(answer) for answer in options.answers],
        ledger=options.ledger,
    )
    options.output.save(page.html)
    if evaluation is not None:
        print_text(_may_be_published("page", released, evaluation))


def _may_be_published(noun: str, released: Any, evaluation: Evaluation | None) -> str:
    if evaluation is not None and not evaluation.private:
        return f"The {noun} shows numbers from labelled records: this part is not private."
    public = released.privacy.is_private
    what = "only the release" if evaluation is None else "a private evaluation"
    return f"The {noun} shows {what}{f': the whole {noun} may be published' if public else ''}."


def card(options: Card) -> None:
    """Write the card."""
    from confide.reports import card as make_card

    options.output.check(card_or_page(options.output.out), options.path, options.evaluation)
    evaluation = None if options.evaluation is None else Evaluation.load(options.evaluation)
    released = load_release(options.path)
    written = make_card(
        released, evaluation=evaluation, title=options.title, task=options.task, file_name=options.path.name
    )
    written.save(options.output.out, overwrite=options.output.force)
    print_text(f"saved: {options.output.out}")
    print_text(_may_be_published("card", released, evaluation))


def demo(options: Demo) -> None:
    """Run the example."""
    from confide.demo import run

    print_text(run(options.out, force=options.force))
