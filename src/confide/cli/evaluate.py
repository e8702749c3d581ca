"""`confide evaluate`: how often the sets contain the truth, on a table that says it; with `--epsilon` privately."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import parsed_list, split
from confide.cli.columns import Columns
from confide.cli.command import command
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import left_out_text, tell, warn
from confide.cli.paying import LedgerOptions, Receipt, scheduled
from confide.cli.values import Findings, PeopleOptions, Released, Source
from confide.errors import InputError
from confide.evaluation import (
    NOT_PRIVATE,
    Asking,
    Evaluation,
    LevelEvaluation,
    PrivateEvaluation,
    described,
    worst_parts,
)
from confide.guarantee import coverage_text
from confide.releases import Release, remarks
from confide.sets import has_law, sentence_of
from confide.support import Kind, Section, to_text
from confide.tables import evaluate_table, evaluate_table_privately

_TOTAL = "none"
PUBLISHABLE = "These numbers are private: they may be published."


@dataclass(frozen=True)
class PrivateOptions:
    """What a private evaluation may cost, and what it is about; without --epsilon none of them."""

    epsilon: float | None = None
    neighbors: str | None = None
    records_per_person: int | None = None
    n: int | None = None
    confidence: str | None = None
    groups: str | None = None
    parts: str | None = None
    width_bins: str | None = None

    def asking(self, account: Mapping[str, Any]) -> Asking | None:
        """What is asked privately; None without --epsilon."""
        if self.epsilon is None:
            return None
        given = {name: value for name, value in vars(self).items() if value is not None}
        if (groups := given.pop("groups", None)) is not None:
            given["group_names"] = tuple(split(groups))
        if (parts := given.pop("parts", None)) is not None:
            given["parts"] = () if parts == _TOTAL else tuple(split(parts))
        if (bins := given.pop("width_bins", None)) is not None:
            given["width_bins"] = _numbers(bins)
        return Asking(**given, **account)


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
    schedule: Path | None = None,
    output: Findings,
) -> int:
    r"""Measure coverage and set size on records with known truth.

    TABLE holds records that were not used for calibration. First it is said
    whether all of them together are covered less than promised, by more than
    luck in calibrating explains: then the records, the model or a column are
    others. The promise is an average: the class, the group (--by, any column)
    and the set size that are covered least are named, too, and all that are
    covered less than promised beyond chance. The numbers are computed from the records without noise: they
    are not private. Share them only if you may speak of these records.

    With --epsilon they are counted with noise, and may be published: coverage
    over all, by class, by set size, and by group (--by with --groups), with
    intervals that hold all at once, noise included.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label --epsilon 1 --out private.json
    """
    bounded = people.people
    private = scheduled(schedule, "evaluation", private, bounded)
    kind = Kind.EVALUATION if private.epsilon is None else Kind.PRIVATE_EVALUATION
    output.check(kind, *source.files, release.calibration, *budget.files, schedule)
    released = release.load()
    what = columns.to_evaluate(released, release.calibration, parsed_list(candidates))
    release.check_group(released, of_classes=columns.task == "score", any_groups=True)
    if fail_below_promise:
        refuse_unjudged(released)
    read: dict[str, Any] = {"by": release.by, "skip_incomplete": source.skip_incomplete}
    found: Evaluation | LevelEvaluation | PrivateEvaluation
    with budget.paying() as receipt:
        asking = private.asking(budget.account(source.file))
        with source.open("evaluating", what, columns.ways) as (opened, what, progress):
            if asking is None:
                found = evaluate_table(opened, what, released, examples=examples, progress=progress, **read)
            else:
                found = evaluate_table_privately(
                    opened, what, released, asking, people=bounded, progress=progress, **read
                )
            public = asking is None or asking.neighbors == "replace_one"  # else their number is secret
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
    """Print an evaluation: for people, or as one JSON document."""
    notes = [*remarks(released), *(shortfall_notes(found) if output.as_json else [])]  # else they are in the text
    for note in notes:
        warn(note)

    def document() -> dict[str, Any]:
        worst, short = worst_fields(found, released), shortfall_fields(found)
        return {**found.fields(), "shortfalls": short, "worst": worst, "warnings": list(notes), **left_out}

    texts = evaluated(found, released), left_out_text(left_out), output.saved(), NOT_PRIVATE
    tell(document, *texts, as_json=output.as_json)


def _tell_private(found: PrivateEvaluation, receipt: Receipt, output: Findings, left_out: Mapping[str, Any]) -> None:
    """The same of a private one, and what it cost."""
    notes = [*receipt.heard.notes, *(shortfall_notes(found) if output.as_json else [])]
    for note in notes:
        warn(note)

    def document() -> dict[str, Any]:
        short = {"shortfalls": shortfall_fields(found), **receipt.heard.fields(), "warnings": notes}
        return {**json.loads(found.to_json()), **short, **receipt.fields(), **left_out}

    texts = found, left_out_text(left_out), receipt.text(), output.saved(), PUBLISHABLE
    tell(document, *receipt.heard.earlier, *texts, as_json=output.as_json)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, split(text)))
    except ValueError:
        raise click.UsageError("--width-bins must be numbers between commas, such as 1,2,5") from None


# Findings in words, beside the promise of the release


def evaluated(found: Evaluation | LevelEvaluation, release: Release) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own; level by level."""
    if isinstance(found, Evaluation):
        parts: tuple[Section, ...] = (described(found, _promise(found, release), release.bounded),)
    else:
        parts = tuple(
            described(one, str(release.parts[alpha].guarantee), title=f"alpha {float(alpha):g}")
            for alpha, one in found.levels.items()
        )
    return to_text(Section("Evaluation", parts=parts))


def worst_fields(found: Evaluation | LevelEvaluation, release: Release) -> list[Mapping[str, Any]]:
    """The same parts as JSON values; of several levels with their alpha. A bound on a loss has none."""
    if isinstance(found, LevelEvaluation):
        return [
            {"alpha": str(alpha), **one.fields()} for alpha, each in found.levels.items() for one in worst_parts(each)
        ]
    return [] if release.bounded else [one.fields() for one in worst_parts(found)]


def shortfall_fields(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[Mapping[str, Any]]:
    """Where coverage over all lies below the promise, as JSON values, by statement."""
    return [{"of": name, **one.fields()} for name, one in found.shortfalls.items()]


def shortfall_notes(found: Evaluation | LevelEvaluation | PrivateEvaluation) -> list[str]:
    """The same in words."""
    return [sentence_of(name, one) for name, one in found.shortfalls.items()]


def refuse_unjudged(release: Release) -> None:
    """Refuse to fail below a promise of which it is not known how far luck in calibrating may fall short."""
    if not has_law(release):
        raise InputError(
            "fail_below_promise",
            ("needs a release with a promise, and a law of how coverage varies from calibration to calibration"),
            remedy="This one has none; leave the option out, and read the interval",
        )


def exit_code(found: Evaluation | LevelEvaluation | PrivateEvaluation, *, fail: bool) -> int:
    """That of a claim that does not hold, if it is asked for and a promise is broken."""
    return CLAIM_FAILED if fail and any(one.broken for one in found.shortfalls.values()) else DONE


def _promise(found: Evaluation, release: Release) -> str:
    if release.by == "side":  # of both ends together, which have promises of their own
        return f"coverage at least {coverage_text(found.promised)}"
    return "; ".join(f"for {name}: {text}" if name else text for name, text in release.promises.items())
