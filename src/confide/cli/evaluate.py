"""`confide evaluate`: coverage on a table with true labels; with `--epsilon` privately."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from confide.cli.charging import LedgerOptions, Receipt
from confide.cli.command import command
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import left_out_text, print_result, print_warning
from confide.cli.request import COLUMN_NAMES, PEOPLE, READING, ScoredColumns, read_arguments, take_columns
from confide.cli.values import Findings, Source, read_release
from confide.core import Release, remarks
from confide.errors import InputError
from confide.evaluation import Evaluation, PrivateRequest
from confide.sets import has_law, sentence_of
from confide.support import FileKind
from confide.tables import evaluate as evaluate_release

NAMES = frozenset(
    [*COLUMN_NAMES, *READING, PEOPLE, "candidates", "alpha", "by", "examples", "fingerprint"]
    + [field.name for field in fields(PrivateRequest)]
) - {"ledger", "dataset", "again"}

PUBLISHABLE = "These numbers are private: they may be published."


@command("evaluate", names=NAMES)
def evaluate(
    *,
    file: str,
    table: str | None = None,
    release: Path,
    columns: ScoredColumns,
    alpha: str | None = None,
    by: str | None = None,
    epsilon: float | None = None,
    group_names: str | None = None,
    examples: int | None = None,
    settings: tuple[str, ...] = (),
    fail_below_promise: bool = False,
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
    typed = {"alpha": alpha, "by": by, "epsilon": epsilon, "group_names": group_names, "examples": examples}
    stated = read_arguments("evaluate", NAMES, {**vars(columns), **typed}, settings)
    if stated.get("examples") and output.out is None:
        raise click.UsageError("--examples needs --out")
    source = Source(file, table, stated.pop("decimal", "."))
    output.check(FileKind.EVALUATION, *source.files, release, *budget.files)
    released = read_release(release, stated)
    if fail_below_promise and not has_law(released):
        must = "needs a release with a promise, and a law of how coverage varies from calibration to calibration"
        remedy = "This one has none; leave the option out, and compare the interval"
        raise InputError("fail_below_promise", must, remedy=remedy)
    what = source.what(take_columns(stated, released))
    stated.pop("candidates", None)  # of losses, which the columns contain
    is_public = "epsilon" not in stated or stated.get("neighbors") == "replace_one"  # otherwise the number is secret
    with budget.charging() as receipt:
        account = budget.account(file)
        with source.open("evaluating") as (opened, progress):
            found = evaluate_release(released, table=opened, what=what, progress=progress, **stated, **account)
            left_out = {"left_out": opened.left_out()} if is_public and stated.get("skip_incomplete") else {}
    output.write(found.to_json())
    _print(found, released, receipt, output, left_out)
    broken = any(one.is_broken for one in found.shortfalls.values())
    return CLAIM_FAILED if fail_below_promise and broken else DONE


def _print(
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
