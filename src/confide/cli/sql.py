"""`confide sql`: the query that counts in a warehouse, or the macro for dbt."""

from pathlib import Path
from typing import Annotated

import click

from confide.cli import options as o
from confide.cli.columns import CountedColumns
from confide.cli.counted import Asked
from confide.cli.output import check_output, say
from confide.cli.parameters import command
from confide.cli.schedule import ScheduleFile
from confide.mechanisms import MECHANISMS
from confide.support import Kind
from confide.warehouse import DIALECTS, counting_query, dbt_macro


@command
def sql(
    *,
    dialect: Annotated[str, o.content("NAME", f"{', '.join(DIALECTS)}; with --dbt also several, as duckdb,snowflake.")],
    table: Annotated[
        str | None, o.content("NAME", "The table, its parts between points; with --dbt the model says it.")
    ] = None,
    dbt: Annotated[bool, o.content(None, "Print a macro for dbt instead of a query.", "--dbt")] = False,
    columns: CountedColumns,
    alpha: o.Alphas,
    privacy: o.PrivacyOptions,
    n: Annotated[int | None, o.privacy("N", "The public number of records, needed under replace_one.")] = None,
    mechanism: Annotated[
        str, o.making("NAME", "As in `confide calibrate`.", click_type=click.Choice(MECHANISMS))
    ] = "slopes",
    candidates: o.CandidatesSpec = None,
    unit: o.Unit = None,
    skip_incomplete: Annotated[
        bool,
        o.columns(None, "Leave out records with missing values, instead of refusing them.", "--skip-incomplete"),
    ] = False,
    people: o.PeopleOptions,
    by: o.ByColumn = None,
    groups: Annotated[
        str | None,
        o.grouping("A,B,C", "With --by: a threshold for each of these; a public list, not taken from the records."),
    ] = None,
    by_class: Annotated[
        bool, o.grouping(None, "A threshold for each class, so that each is covered on its own.", "--by-class")
    ] = False,
    schedule: ScheduleFile = None,
    plan: Annotated[
        Path | None, o.output("FILE", "Also write the request, for `confide calibrate --counts COUNTS --plan FILE`.")
    ] = None,
    force: o.Force = False,
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
    check_output(plan, Kind.COUNTING, schedule, force=force)
    divided = o.GroupOptions(by, groups, by_class)
    asked = Asked(
        columns.all, alpha, privacy, n, mechanism, candidates, unit, people, divided, skip_incomplete, schedule
    ).plan()
    dialects = o.split(dialect)
    if dbt:
        if table is not None:
            raise click.UsageError("--table must be left out with --dbt: the model says it, as ref('records')")
        text = dbt_macro(asked, dialects)
    else:
        if table is None:
            raise click.UsageError("Missing option '--table'.")
        if len(dialects) > 1:
            raise click.UsageError("--dialect must be one, but with --dbt")
        text = counting_query(asked, dialects[0], table)
    if plan is not None:
        asked.save(plan, overwrite=force)
    say(text.rstrip("\n"))
