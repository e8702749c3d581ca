"""Commands that apply a release to a table: `confide predict`, for sets or intervals, and `evaluate`, for coverage."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from confide.cli.charging import Accounting, Receipt
from confide.cli.commands import Evaluate, Predict
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.options import EVALUATE, PREDICT
from confide.cli.output import capture_warnings, check_output, left_out_text, print_result, print_warning
from confide.cli.request import arguments_of, split, take_columns, texts_of
from confide.cli.values import Source, read_release
from confide.core import Release, remarks
from confide.errors import CoverageWarning
from confide.evaluation import Evaluation
from confide.sets import count_shortfall, has_law, sentence_of
from confide.support import FileKind, as_place, require, short_number
from confide.tables import evaluate as evaluate_release
from confide.tables import file_format, is_folder, predict_table, refuse_existing_folder
from confide.watching import CorrectedRelease


def predict(options: Predict) -> None:
    """Predict for a table, and print a summary."""
    # The arguments, and the files.
    arguments = arguments_of("predict_table", PREDICT, options)
    if "keep" in arguments:
        arguments["keep"] = tuple(chain.from_iterable(map(split, texts_of(arguments["keep"]))))
    released = read_release(options.release, arguments)
    columns = take_columns(arguments, released)
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    _check_output(source, options)

    # Predict.
    columns = source.require_columns(columns, "--probabilities or --prediction")
    with capture_warnings(CoverageWarning) as captured, source.open("predicting") as (opened, progress):
        summary = predict_table(
            opened, columns, released, options.out, overwrite=options.force, progress=progress, **arguments
        )
        if arguments.get("skip_incomplete"):
            summary["left_out"] = opened.left_out()

    _print_summary(summary, released, captured.notes, options)


def _print_summary(summary: Mapping[str, Any], released: Release, notes: Sequence[str], options: Predict) -> None:
    # Too many empty sets are a warning, too.
    empty = int(summary.get("empty_sets", 0))
    rows = int(summary["rows"])
    notes = [*notes, *_too_many_empty(released, empty, rows)]
    print_warning(*notes)

    # The sets or intervals, and the promise.
    size = f", {summary['mean_set_size']:.2f} classes each on average" if "mean_set_size" in summary else ""
    print_result(
        {"out": options.out, **_promised(released), **summary, "warnings": notes},
        f"{short_number(rows)} {'intervals' if options.probabilities is None else 'sets'}{size}",
        f"empty sets: {empty:,} of {rows:,} ({100 * empty / rows:.2g} %)" if empty else None,
        left_out_text(summary),
        *(f"promise{f' for {name}' if name else ''}: {text}" for name, text in released.promises.items()),
        f"saved: {options.out}",
        as_json=options.as_json,
    )


def _check_output(source: Source, options: Predict) -> None:
    if is_folder(options.out):
        refuse_existing_folder(as_place(options.out))
    else:
        file_format(as_place(options.out))  # an unknown ending raises
        check_output(options.out, FileKind.PREDICTIONS, *source.files, options.release, force=options.force)


def _too_many_empty(released: Release, empty: int, rows: int) -> list[str]:
    """A warning if there are too many empty sets for the promise: a sign of a shift that needs no true labels."""
    if not empty or released.loss or count_shortfall(released, rows - empty, rows) is None:
        return []
    return [
        f"{empty:,} of {rows:,} sets are empty, and an empty set never contains the true label: so many that the "
        "promise cannot hold for these records. Check that records and model are those of the calibration"
    ]


def _promised(released: Release) -> dict[str, Any]:
    """Thresholds and the smallest coverage, as JSON values."""
    if isinstance(released, CorrectedRelease):
        return released.fields
    if released.by is None and released.loss is None:
        return {"threshold": released.threshold, "coverage": released.coverage}
    parts = released.parts if released.disjoint else released.by_name
    return {
        "thresholds": {str(name): threshold.threshold for name, threshold in parts.items()},
        "coverage": min(threshold.coverage for threshold in parts.values()),
    }


# Evaluations


def evaluate(options: Evaluate) -> int:
    """Evaluate a release on a table, and print its coverage."""
    # The arguments, and what they exclude.
    arguments = arguments_of("evaluate", EVALUATE, options)
    budget = Accounting.of(options.budget, arguments)
    if "epsilon" not in arguments:
        budget.refuse("an evaluation without epsilon, which charges nothing")

    # The files.
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    options.output.check(FileKind.EVALUATION, *source.files, options.release, *budget.files)
    released = read_release(options.release, arguments)
    if options.fail_below_promise:
        _check_law(released)

    # Charge and read; the number of records left out is secret with that of the others.
    columns = source.require_columns(take_columns(arguments, released))
    arguments.pop("candidates", None)  # of a loss, which the columns contain
    is_secret = "epsilon" in arguments and arguments.get("neighbors") != "replace_one"
    with budget.charging() as receipt:
        evaluating = {**arguments, **budget.account(options.file)}
        with source.open("evaluating") as (opened, progress):
            evaluation = evaluate_release(released, table=opened, what=columns, progress=progress, **evaluating)
            is_stated = arguments.get("skip_incomplete") and not is_secret
            left_out = {"left_out": opened.left_out()} if is_stated else {}

    # Write, print, and judge.
    options.output.write(evaluation.to_json())
    _print(evaluation, released, receipt, left_out, options)
    broken = any(short.is_broken for short in evaluation.shortfalls.values())
    return CLAIM_FAILED if options.fail_below_promise and broken else DONE


def _check_law(released: Release) -> None:
    """Check that luck in calibrating can be told from a broken promise."""
    must = "needs a release with a promise, and a law of how coverage varies from calibration to calibration"
    remedy = "This one has none; leave the option out, and compare the interval"
    require("fail_below_promise", has_law(released), must, remedy=remedy)


def _print(
    evaluation: Evaluation, released: Release, receipt: Receipt, left_out: Mapping[str, Any], options: Evaluate
) -> None:
    # Warnings. The text of an evaluation contains those about coverage, its JSON does not.
    notes = list(receipt.captured.notes if evaluation.private else remarks(released))
    if options.as_json:
        notes += [sentence_of(name, short) for name, short in evaluation.shortfalls.items()]
    print_warning(*notes)

    # A private evaluation also has a cost, and may be published.
    texts: list[object] = [evaluation, left_out_text(left_out)]
    cost: dict[str, Any] = {}
    if evaluation.private:
        texts = [*receipt.captured.earlier, *texts, receipt.text()]
        cost = {**receipt.captured.fields(), **receipt.fields()}
    texts.append(options.output.saved())
    if evaluation.private:
        texts.append("These numbers are private: they may be published.")
    shortfalls = [{"of": name, **short.fields()} for name, short in evaluation.shortfalls.items()]
    document = {**evaluation.fields(), **cost, "shortfalls": shortfalls, "warnings": notes, **left_out}
    print_result(document, *texts, as_json=options.as_json)
