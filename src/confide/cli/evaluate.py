"""`confide evaluate`: coverage on a table with true labels; with `--epsilon` privately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from confide.cli.charging import LedgerOptions, Receipt
from confide.cli.choices import candidate_list, split
from confide.cli.columns import Columns
from confide.cli.command import command
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import left_out_text, print_result, print_warning
from confide.cli.values import Findings, PeopleOptions, Released, Source
from confide.core import Release, remarks
from confide.errors import InputError
from confide.evaluation import Evaluation, PrivateRequest
from confide.sets import has_law, sentence_of
from confide.support import FileKind
from confide.tables import evaluate_table, evaluate_table_privately

_TOTAL = "none"
PUBLISHABLE = "These numbers are private: they may be published."


@dataclass(frozen=True)
class PrivateOptions:
    """The options of a private evaluation, which need --epsilon."""

    epsilon: float | None = None
    neighbors: str | None = None
    records_per_person: int | None = None
    n: int | None = None
    confidence: str | None = None
    groups: str | None = None
    parts: str | None = None
    width_bins: str | None = None

    def request(self, account: Mapping[str, Any]) -> PrivateRequest | None:
        """The request of a private evaluation; None without --epsilon."""
        if self.epsilon is None:
            return None
        given = {name: value for name, value in vars(self).items() if value is not None}
        if (groups := given.pop("groups", None)) is not None:
            given["group_names"] = tuple(split(groups))
        if (parts := given.pop("parts", None)) is not None:
            given["parts"] = () if parts == _TOTAL else tuple(split(parts))
        if (bins := given.pop("width_bins", None)) is not None:
            given["width_bins"] = _numbers(bins)
        return PrivateRequest(**given, **account)


@command("evaluate")
def evaluate(
    source: Source,
    *,
    release: Released,
    columns: Columns,
    candidates: str | None = None,
    examples: int = 0,
    fail_below_promise: bool = False,
    private: PrivateOptions,
    people: PeopleOptions,
    budget: LedgerOptions,
    output: Findings,
) -> int:
    r"""Measure coverage and set size on records with true labels.

    TABLE has records that were not used for calibration. The output first
    states whether their coverage is below the promised one by more than chance
    in the calibration explains. If so, the records, the model or a column
    differ from those of the calibration. The promise is an average. The output
    therefore also lists coverage by class, by group (--by, any column) and by
    set size, and marks all parts that are below it beyond chance. The numbers
    are computed without noise: they are not private. Share them only if you
    may publish facts about these records.

    With --epsilon the counts have noise, and may be published: coverage over
    all, by class, by set size, and by group (--by with --groups), with
    intervals that hold simultaneously, noise included.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label --epsilon 1 --out private.json
    """
    bounded = people.people
    output.check(FileKind.EVALUATION, *source.files, release.calibration, *budget.files)
    released = release.load()
    what = columns.to_evaluate(released, release.calibration, candidate_list(candidates))
    release.check_group(released, of_classes=columns.task == "score", any_groups=True)
    if fail_below_promise:
        check_has_law(released)
    read: dict[str, Any] = {"by": release.columns_of(released), "skip_incomplete": source.skip_incomplete}
    with budget.charging() as receipt:
        request = private.request(budget.account(source.file))
        with source.open("evaluating", what, columns.ALTERNATIVES) as (opened, what, progress):
            if request is None:
                found = evaluate_table(opened, what, released, examples=examples, progress=progress, **read)
            else:
                found = evaluate_table_privately(
                    opened, what, released, request, people=bounded, progress=progress, **read
                )
            public = request is None or request.neighbors == "replace_one"  # otherwise their number is secret
            left_out = source.left_out(opened) if public else {}
    output.write(found.to_json())
    _tell(found, released, receipt, output, left_out)
    broken = any(one.is_broken for one in found.shortfalls.values())
    return CLAIM_FAILED if fail_below_promise and broken else DONE


def _tell(
    found: Evaluation, released: Release, receipt: Receipt, output: Findings, left_out: Mapping[str, Any]
) -> None:
    """Print an evaluation, as text or as JSON; of a private one also its cost."""
    notes = list(receipt.heard.notes if found.private else remarks(released))
    if output.as_json:  # the text contains them
        notes += [sentence_of(name, one) for name, one in found.shortfalls.items()]
    for note in notes:
        print_warning(note)

    def document() -> dict[str, Any]:
        short = [{"of": name, **one.fields()} for name, one in found.shortfalls.items()]
        cost = {**receipt.heard.fields(), **receipt.fields()} if found.private else {}
        return {**found.fields(), **cost, "shortfalls": short, "warnings": notes, **left_out}

    earlier = receipt.heard.earlier if found.private else ()
    charge, last = (receipt.text(), PUBLISHABLE) if found.private else (None, None)
    texts = found, left_out_text(left_out), charge, output.saved(), last
    print_result(document, *earlier, *texts, as_json=output.as_json)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, split(text)))
    except ValueError:
        raise click.UsageError("--width-bins must be numbers between commas, such as 1,2,5") from None


def check_has_law(release: Release) -> None:
    """Reject --fail-below-promise for a release without a known law of its coverage over calibrations."""
    if not has_law(release):
        raise InputError(
            "fail_below_promise",
            ("needs a release with a promise, and a law of how coverage varies from calibration to calibration"),
            remedy="This one has none; leave the option out, and compare the interval",
        )
