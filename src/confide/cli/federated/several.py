"""What `confide federated plan` makes of its options: a plan, or several under one signature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.federated import FederatedPlan, SeveralPlans, Silo, plan_groups, plan_levels
from confide.federated import plan as make_plan
from confide.tables import class_keys


@dataclass(frozen=True)
class GroupNames:
    """What thresholds depend on: public names, the same in every silo."""

    groups: Annotated[
        str | None,
        o.grouping("A,B,C", "private-qq: a threshold for each of these; a public list, not taken from the records."),
    ] = None
    by_class: Annotated[
        bool, o.grouping(None, "private-qq: a threshold for each of --classes, so that each is covered.", "--by-class")
    ] = False

    @property
    def given(self) -> bool:
        """Whether there is a threshold for each group or class."""
        return self.groups is not None or self.by_class


def planned(
    silos: Sequence[Silo], alpha: str, epsilon: float | None, names: GroupNames, *, n_min: int | None, **options: Any
) -> FederatedPlan | SeveralPlans:
    """The plan, or the plans of several levels, or of groups or classes; `alpha` as it was typed."""
    levels = o.levels_of(alpha)
    if names.groups is not None and names.by_class:
        raise click.UsageError("give --groups or --by-class, not both")
    if names.given and len(levels) > 1:
        raise click.UsageError("--alpha is one level with --groups and --by-class")
    options |= {} if n_min is None else {"n_min": n_min}
    if names.by_class:
        classes = options.pop("classes")
        if classes is None:
            raise click.UsageError("--by-class needs --classes, the names of all classes")
        return plan_groups(silos, class_keys(tuple(classes)), levels[0], epsilon, by="class", **options)
    if names.groups is not None:
        return plan_groups(silos, o.split(names.groups), levels[0], epsilon, **options)
    if len(levels) > 1:
        return plan_levels(silos, levels, epsilon, **options)
    return make_plan(silos, alpha, epsilon, **options)
