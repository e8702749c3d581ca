"""Counting where nothing here may look: the options that make a plan, and `confide calibrate --counts`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.cli.columns import Columns, chosen_candidates
from confide.cli.schedule import scheduled_privacy
from confide.errors import InputError
from confide.warehouse import CountingPlan, read_counts


@dataclass(frozen=True)
class CountsOptions:
    """What came back from the query of `confide sql`, instead of a table."""

    counts: Annotated[
        list[Path] | None,
        o.columns("FILE", "Instead of TABLE: what `confide sql` had counted."),
    ] = None
    plan: Annotated[Path | None, o.columns("FILE", "With --counts: the plan of `confide sql`.")] = None


@dataclass(frozen=True)
class Asked:
    """The options of a request, as `confide sql` and `confide calibrate --counts` take them."""

    columns: Columns
    alpha: str | None
    privacy: o.PrivacyOptions
    n: int | None
    mechanism: str
    candidates: str | None
    unit: float | None
    people: o.PeopleOptions
    groups: o.GroupOptions
    skip_incomplete: bool
    schedule: Path | None

    def plan(self) -> CountingPlan:
        """The plan of these options."""
        if self.alpha is None:
            raise click.UsageError("Missing option '--alpha'.")
        what = self.columns.what()
        if what is None:
            raise click.UsageError(f"say which columns to count, by {self.columns.ways}")
        chosen = chosen_candidates(self.candidates, self.unit, what)
        bounded = self.people.people
        privacy = vars(scheduled_privacy(self.schedule, self.privacy, bounded))
        divided = self.groups.arguments(label=self.columns.label, with_ledger=self.groups.partition is not None)
        divided.pop("partition", None)
        levels = o.levels_of(self.alpha)
        asked = levels if len(levels) > 1 else levels[0]
        return CountingPlan.of(
            what,
            asked,
            n=self.n,
            candidates=chosen,
            people=bounded,
            skip_incomplete=self.skip_incomplete,
            mechanism=self.mechanism,
            **divided,
            **privacy,
        )

    def planned(self, file: Path | None) -> CountingPlan:
        """The plan of a file, beside which no option of a request may stand; without a file that of the options."""
        if file is None and (self.alpha is not None or self.columns != Columns()):
            return self.plan()
        if file is None:
            raise click.UsageError("--counts need the request that they answer: --plan FILE, or its options anew")
        groups = replace(self.groups, partition=None)
        blank = Asked(
            Columns(), None, o.PrivacyOptions(), None, "slopes", None, None, o.PeopleOptions(), o.GroupOptions(), False,
            None,
        )  # fmt: skip
        if replace(self, groups=groups) != blank:
            raise click.UsageError("options of the request must be left out with --plan, which has them")
        return CountingPlan.load(file)


def released_from_counts(plan: CountingPlan, files: list[Path], account: dict[str, Any], **more: Any) -> Any:
    """The release of what a plan asks for, from files of counts; `account` pays, and `more` is kept in the release."""
    counted = read_counts(files, plan)
    if account and (plan.division is None) != (account.get("partition") is None):
        raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger with groups")
    return plan.calibrate(counted, **account, **more)


def one_file(files: list[Path], key: Path | None) -> str:
    """The file that a key binds a data set's name to."""
    if key is not None and len(files) > 1:
        raise InputError("--ledger-key binds to one file's bytes; leave it out for several --counts")
    return str(files[0])
