"""`confide evaluate`: coverage on a table with true labels; with `--epsilon` privately."""

from collections.abc import Mapping
from typing import Any

import click

from confide.cli.charging import Accounting, Receipt
from confide.cli.commands import Evaluate
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.names import EVALUATE
from confide.cli.output import left_out_text, print_result, print_warning
from confide.cli.request import arguments_of, take_columns
from confide.cli.values import Source, read_release
from confide.cli.written import Findings
from confide.core import Release, remarks
from confide.errors import InputError
from confide.evaluation import Evaluation
from confide.sets import has_law, sentence_of
from confide.support import FileKind
from confide.tables import evaluate as evaluate_release

PUBLISHABLE = "These numbers are private: they may be published."


def evaluate(options: Evaluate) -> int:
    """Evaluate a release on a table, and print its coverage."""
    # The arguments, and what they exclude.
    arguments, output, release = arguments_of("evaluate", EVALUATE, options), options.output, options.release
    budget = Accounting.of(options.budget, arguments)
    if arguments.get("examples") and output.out is None:
        raise click.UsageError("--examples needs --out")
    if "epsilon" not in arguments:
        budget.refuse("an evaluation without epsilon, which charges nothing")

    # The files.
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    output.check(FileKind.EVALUATION, *source.files, release, *budget.files)
    released = read_release(release, arguments)
    if options.fail_below_promise and not has_law(released):
        must = "needs a release with a promise, and a law of how coverage varies from calibration to calibration"
        remedy = "This one has none; leave the option out, and compare the interval"
        raise InputError("fail_below_promise", must, remedy=remedy)

    # Charge and read.
    columns = source.require_columns(take_columns(arguments, released))
    arguments.pop("candidates", None)  # of losses, which the columns contain
    is_private = "epsilon" in arguments and arguments.get("neighbors") != "replace_one"
    with budget.charging() as receipt:
        arguments |= budget.account(options.file)
        with source.open("evaluating") as (opened, progress):
            evaluation = evaluate_release(released, table=opened, what=columns, progress=progress, **arguments)
            # The number of records left out is secret with that of the others.
            is_stated = arguments.get("skip_incomplete") and not is_private
            left_out = {"left_out": opened.left_out()} if is_stated else {}

    # Write, print, and judge.
    output.write(evaluation.to_json())
    _print(evaluation, released, receipt, output, left_out)
    broken = any(short.is_broken for short in evaluation.shortfalls.values())
    return CLAIM_FAILED if options.fail_below_promise and broken else DONE


def _print(
    evaluation: Evaluation, released: Release, receipt: Receipt, output: Findings, left_out: Mapping[str, Any]
) -> None:
    # Warnings; the text contains those about coverage.
    notes = list(receipt.captured.notes if evaluation.private else remarks(released))
    if output.as_json:
        notes += [sentence_of(name, short) for name, short in evaluation.shortfalls.items()]
    for note in notes:
        print_warning(note)

    def document() -> dict[str, Any]:
        shortfalls = [{"of": name, **short.fields()} for name, short in evaluation.shortfalls.items()]
        cost = {**receipt.captured.fields(), **receipt.fields()} if evaluation.private else {}
        return {**evaluation.fields(), **cost, "shortfalls": shortfalls, "warnings": notes, **left_out}

    # A private evaluation also has a cost.
    earlier = receipt.captured.earlier if evaluation.private else ()
    charge, last = (receipt.text(), PUBLISHABLE) if evaluation.private else (None, None)
    texts = evaluation, left_out_text(left_out), charge, output.saved(), last
    print_result(document, *earlier, *texts, as_json=output.as_json)
