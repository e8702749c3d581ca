"""The commands and their help."""

from typing import Annotated

import typer

from confide.cli.audit import audit
from confide.cli.budget_plan import budget
from confide.cli.calibrate import calibrate
from confide.cli.demo import demo
from confide.cli.doctor import doctor
from confide.cli.evaluate import evaluate
from confide.cli.exit_codes import IN_WORDS
from confide.cli.federated import app as federated
from confide.cli.help import Command, Group
from confide.cli.ledger import ledger
from confide.cli.parameters import with_places
from confide.cli.plan import plan
from confide.cli.predict import predict
from confide.cli.randomise_labels import randomise_labels
from confide.cli.recalibrate import recalibrate
from confide.cli.report import report
from confide.cli.show import show
from confide.cli.sql import sql
from confide.cli.verbosity import LOG, told_on_stderr, wanted_level
from confide.cli.verify import verify
from confide.cli.watch import watch

_EXIT_CODES = "Exit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in IN_WORDS.items())

app = typer.Typer(
    name="confide",
    help="Prediction sets with a coverage guarantee and a differential-privacy guarantee.\n\n"
    "The usual way: plan, calibrate on records with known truth, predict for new ones; evaluate, watch, show, "
    "verify and report look back, and doctor says what is installed and known.",
    epilog=_EXIT_CODES,
    cls=Group,
    suggest_commands=False,  # click suggests, too
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"confide {version('confide')}")
        raise typer.Exit


@app.callback()
def _confide(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help=f"Before a command: say on stderr what happens, nothing private; -vv says more. Or set {LOG}=info.",
        ),
    ] = 0,
) -> None:
    if level := wanted_level(verbose):
        context.with_resource(told_on_stderr(level))


for command in (
    plan, calibrate, recalibrate, predict, evaluate, watch, show, verify, report, sql, randomise_labels, audit, doctor,
    demo,
):  # fmt: skip
    app.command(cls=Command)(command if command in (demo, doctor) else with_places(command))
app.add_typer(budget, name="budget")
app.add_typer(ledger, name="ledger")
app.add_typer(federated)
