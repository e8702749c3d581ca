"""`confide evaluate`: coverage on a table with true labels; with `--epsilon` privately."""

import json
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
from confide.evaluation import (
    NOT_PRIVATE,
    Evaluation,
    LevelEvaluation,
    PrivateEvaluation,
    PrivateRequest,
    described,
    promise_text,
    worst_parts,
)
from confide.sets import has_law, sentence_of
from confide.support import FileKind, Section, to_text
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
    therefore also lists the class, the group (--by, any column) and the set
    size with the least coverage, and all that are below it beyond chance. The
    numbers are computed without noise: they are not private. Share them only
    if you may publish facts about these records.

    With --epsilon the counts have noise, and may be published: coverage over
    all, by class, by set size, and by group (--by with --groups), with
    intervals that hold simultaneously, noise included.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label --epsilon 1 --out private.json
    """
    bounded = people.people
    kind = FileKind.EVALUATION if private.epsilon is None else FileKind.PRIVATE_EVALUATION
    output.check(kind, *source.files, release.calibration, *budget.files)
    released = release.load()
    what = columns.to_evaluate(released, release.calibration, candidate_list(candidates))
    release.check_group(released, of_classes=columns.task == "score", any_groups=True)
    if fail_below_promise:
        check_has_law(released)
    read: dict[str, Any] = {"by": release.columns_of(released), "skip_incomplete": source.skip_incomplete}
    found: Evaluation | LevelEvaluation | PrivateEvaluation
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
    if isinstance(found, PrivateEvaluation):
        _tell_private(found, receipt, output, left_out)
    else:
        _tell(found, released, output, left_out)
    return exit_code(found, fail=fail_below_promise)


def _tell(
    found: Evaluation | LevelEvaluation, released: Release, output: Findings, left_out: Mapping[str, Any]
) -> None:
    """Print an evaluation, as text or as JSON."""
    notes = [*remarks(released), *(shortfall_notes(found) if output.as_json else [])]  # the text contains them
    for note in notes:
        print_warning(note)

    def document() -> dict[str, Any]:
        worst, short = worst_fields(found, released), shortfall_fields(found)
        return {**found.fields(), "shortfalls": short, "worst": worst, "warnings": list(notes), **left_out}

    texts = evaluation_text(found, released), left_out_text(left_out), output.saved(), NOT_PRIVATE
    print_result(document, *texts, as_json=output.as_json)


def _tell_private(found: PrivateEvaluation, receipt: Receipt, output: Findings, left_out: Mapping[str, Any]) -> None:
    """Print a private evaluation and its cost."""
    notes = [*receipt.heard.notes, *(shortfall_notes(found) if output.as_json else [])]
    for note in notes:
        print_warning(note)

    def document() -> dict[str, Any]:
        short = {"shortfalls": shortfall_fields(found), **receipt.heard.fields(), "warnings": notes}
        return {**json.loads(found.to_json()), **short, **receipt.fields(), **left_out}

    texts = found, left_out_text(left_out), receipt.text(), output.saved(), PUBLISHABLE
    print_result(document, *receipt.heard.earlier, *texts, as_json=output.as_json)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, split(text)))
    except ValueError:
        raise click.UsageError("--width-bins must be numbers between commas, such as 1,2,5") from None


# Results compared with the promise of the release


def evaluation_text(found: Evaluation | LevelEvaluation, release: Release) -> str:
    """Coverage compared with the promise, sizes, and a table of parts with their own thresholds; level by level."""
    if isinstance(found, Evaluation):
        parts: tuple[Section, ...] = (described(found, promise_text(found, release), release.bounded),)
    else:
        parts = tuple(
            described(one, promise_text(one, release.at(alpha)), title=f"alpha {float(alpha):g}")
            for alpha, one in found.levels.items()
        )
    return to_text(Section("Evaluation", parts=parts))


def worst_fields(found: Evaluation | LevelEvaluation, release: Release) -> list[Mapping[str, Any]]:
    """The parts with the least coverage as JSON values, with alpha for several levels; none for a bound on a loss."""
    if isinstance(found, LevelEvaluation):
        return [
            {"alpha": str(alpha), **one.fields()} for alpha, each in found.levels.items() for one in worst_parts(each)
        ]
    return [] if release.loss else [one.fields() for one in worst_parts(found)]


def shortfall_fields(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[Mapping[str, Any]]:
    """Total coverage below the promise, as JSON values, by statement."""
    return [{"of": name, **one.fields()} for name, one in found.shortfalls.items()]


def shortfall_notes(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[str]:
    """Total coverage below the promise, in words."""
    return [sentence_of(name, one) for name, one in found.shortfalls.items()]


def check_has_law(release: Release) -> None:
    """Reject --fail-below-promise for a release without a known law of its coverage over calibrations."""
    if not has_law(release):
        raise InputError(
            "fail_below_promise",
            ("needs a release with a promise, and a law of how coverage varies from calibration to calibration"),
            remedy="This one has none; leave the option out, and compare the interval",
        )


def exit_code(found: Evaluation | LevelEvaluation | PrivateEvaluation, *, fail: bool) -> int:
    """`CLAIM_FAILED` if `fail` is set and a promise is broken, else `DONE`."""
    return CLAIM_FAILED if fail and any(one.is_broken for one in found.shortfalls.values()) else DONE
