"""A request as it is typed, and where nothing here may look: `confide sql`, and the counts that its query gave."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import chosen_candidates, levels_of, split
from confide.cli.columns import Columns
from confide.cli.command import command
from confide.cli.output import check_output, say
from confide.cli.paying import LedgerOptions, scheduled_privacy
from confide.cli.values import GroupOptions, PeopleOptions, PrivacyOptions, check_partition
from confide.errors import InputError
from confide.support import Kind
from confide.warehouse import CountingPlan, counting_query, dbt_macro, read_counts


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """What is asked of a calibration, whoever counts."""

    columns: Columns
    alpha: str | None = None
    privacy: PrivacyOptions
    n: int | None = None
    mechanism: str = "slopes"
    candidates: str | None = None
    unit: float | None = None
    people: PeopleOptions
    groups: GroupOptions
    schedule: Path | None = None
    skip_incomplete: bool = False

    @property
    def levels(self) -> list[str]:
        """The levels of --alpha, which is needed."""
        if self.alpha is None:
            raise click.UsageError("Missing option '--alpha'.")
        return levels_of(self.alpha)

    def plan(self) -> CountingPlan:
        """The plan by which a warehouse counts."""
        levels, what, people = self.levels, self.columns.what(), self.people.people
        if what is None:
            raise click.UsageError(f"say which columns to count, by {self.columns.ways}")
        divided = self.groups.arguments()
        divided.pop("partition", None)
        return CountingPlan.of(
            what,
            levels if len(levels) > 1 else levels[0],
            n=self.n,
            candidates=chosen_candidates(self.candidates, self.unit, what),
            people=people,
            skip_incomplete=self.skip_incomplete,
            mechanism=self.mechanism,
            **divided,
            **vars(scheduled_privacy(self.schedule, self.privacy, people)),
        )


@dataclass(frozen=True)
class CountsOptions:
    """What came back from the query of `confide sql`, instead of a table."""

    counts: tuple[Path, ...] = ()
    plan: Path | None = None

    def planned(self, request: RequestOptions) -> CountingPlan:
        """The plan that the counts answer: of a file, or of the options of a request."""
        if self.plan is not None:
            return CountingPlan.load(self.plan)
        if request.alpha is None and request.columns.task is None:
            raise click.UsageError("--counts need the request that they answer: --plan FILE, or its options anew")
        return request.plan()

    def release(
        self, plan: CountingPlan, budget: LedgerOptions, partition: str | None, words: Mapping[str, str] | None
    ) -> Any:
        """The release of what a plan asks for, from the counts."""
        if budget.ledger_key is not None and len(self.counts) > 1:
            raise InputError("--ledger-key binds to one file's bytes; leave it out for several --counts")
        account = budget.account(str(self.counts[0]))
        counted = read_counts(list(self.counts), plan)
        if account and plan.division is not None:
            check_partition(budget.ledger, partition)
        if account and partition is not None:
            if plan.division is None:
                raise click.UsageError("--partition must be left out: the plan divides no records into groups")
            account["partition"] = partition
        return plan.calibrate(counted, **account, about=words)


@command("sql", without="logits truth losses loss bound partition", required="alpha")
def sql(
    *,
    dialect: str,
    table: str | None = None,
    dbt: bool = False,
    request: RequestOptions,
    plan: Path | None = None,
    force: bool = False,
) -> None:
    r"""Print the query that counts in a warehouse, where no Python runs.

    Nothing is read, connected to or charged. The query computes a score per
    record (lac, absolute_residual, cqr and its sides, or a column of scores)
    and counts it over the candidates that follow from these options. Run it,
    keep its answer where the records are kept, for it is as private, and
    hand it to `confide calibrate --counts`. Class names stand for the * of
    --probabilities: --classes has to list them all.

    Example:

      confide sql --dialect snowflake --table clinic.records \
        --probabilities 'p_*' --classes benign,malignant --label diagnosis \
        --alpha 0.1 --epsilon 1 --plan plan.json > count.sql
    """
    check_output(plan, Kind.COUNTING, request.schedule, force=force)
    asked, dialects = request.plan(), split(dialect)
    if dbt:
        text = dbt_macro(asked, dialects)
    elif table is None:
        raise click.UsageError("Missing option '--table'.")
    elif len(dialects) > 1:
        raise click.UsageError("--dialect must be one, but with --dbt")
    else:
        text = counting_query(asked, dialects[0], table)
    if plan is not None:
        asked.save(plan, overwrite=force)
    say(text.rstrip("\n"))
