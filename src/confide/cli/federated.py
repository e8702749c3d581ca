"""`confide federated keygen | plan | answer | aggregate | report`: silos that exchange small signed files."""

import math
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click
import typer

from confide.candidates import Candidates
from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.columns import Columns, Score, parsed
from confide.cli.help import Command, Group
from confide.cli.output import check_output, say, warn
from confide.cli.parameters import command
from confide.counting import ScoreHistogram
from confide.errors import EarlierReleaseWarning, InputError
from confide.federated import (
    METHODS,
    RECORDS,
    FederatedCalibration,
    FederatedPlan,
    Policy,
    Promise,
    Refusal,
    Silo,
    SiloKeys,
    SiloLedger,
    coverage_in_silo,
    read_time,
)
from confide.federated import aggregate as aggregate_answers
from confide.federated import answer as answer_plan
from confide.federated import plan as make_plan
from confide.mechanisms import practically_none
from confide.releases import everything, load_release, names_among
from confide.support import Classes, Kind, privacy_loss, read_text, write_text
from confide.tables import Classified, Losses, Regressed, What, score_histogram

app = typer.Typer(
    name="federated",
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "Everybody: keygen. The coordinator: plan, then aggregate. Every silo: answer, and if it likes report. Only the "
    "private keys and the ledger stay secret.",
    cls=Group,
    rich_markup_mode=None,
)

Keys = Annotated[Path, typer.Option(metavar="FILE", help="Private keys, written by keygen.")]
PlanFile = Annotated[Path, typer.Option(metavar="FILE", help="The signed plan.")]


@dataclass(frozen=True)
class SiloBudget:
    """Who pays for what a silo says."""

    ledger: Annotated[Path, typer.Option(metavar="FILE", help="This silo's budget ledger; made if new. Keep it.")]
    budget: Annotated[
        float, typer.Option(help="Privacy loss that all releases about these records together may cost.", min=0)
    ]
    dataset: Annotated[str, typer.Option(help="The name of these records in the ledger.")] = RECORDS

    def open(self) -> SiloLedger:
        """The ledger, for these records."""
        return SiloLedger(self.ledger, self.dataset)

    def spent(self) -> str:
        """What these records have cost until now, in words."""
        spent = self.open().spent
        if math.isinf(spent):
            return f"spent so far: +inf, for an answer was not private; the budget was {self.budget:g}"
        weak = practically_none(spent)
        return f"spent so far: {spent:.6g} of {self.budget:g}{f', {weak}' if weak else ''}"


@app.command(cls=Command)
def keygen(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the silo or of the coordinator.")],
    keys: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the private keys.")],
    public: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the public file.")],
    size: Annotated[int | None, typer.Option(help="Number of calibration records, if it may be public.", min=1)] = None,
) -> None:
    r"""Make the keys of a silo, and the public file to send around.

    Compare the fingerprints by another channel, for example by phone: all
    trust in the files rests on the public files being the right ones.

    Example:

      confide federated keygen north --keys north.key \
        --public north.json --size 300
    """
    check_output(public, Kind.SILO, keys, force=False)
    made = SiloKeys.generate(name)
    made.save(keys)
    write_text(public, made.public(size).to_json(), overwrite=False)
    say(f"keys: {keys} (private)\npublic: {public}\nfingerprint: {made.public().signing[:16]}")


@app.command(cls=Command)
@command
def plan(
    *,
    silo: Annotated[list[Path], typer.Option(metavar="FILE", help="Public file of a silo; repeat it.")],
    keys: Keys,
    output: o.Output,
    alpha: o.Alpha,
    epsilon: o.Epsilon = None,
    method: Annotated[str, typer.Option(click_type=click.Choice(METHODS), help="How to calibrate.")] = "private-qq",
    score: Score = None,
    candidates: o.CandidatesSpec = None,
    unit: o.Unit = None,
    delta: o.Delta = None,
    dropouts: Annotated[int, typer.Option(help="Silos that may be missing.", min=0)] = 0,
    liars: Annotated[int, typer.Option(help="Silos that may send anything.", min=0)] = 0,
    arbitrary: Annotated[
        bool, typer.Option("--arbitrary", help="Whether a silo answers may depend on its scores.")
    ] = False,
    colluding: Annotated[
        int | None, typer.Option(help="secure-sum: silos that may collude with the coordinator.", min=0)
    ] = None,
    n_min: o.NMin = 1,
    n_typical: o.NTypical = None,
    closes: Annotated[
        str | None, typer.Option(metavar="TIME", help="UTC time after which answers are late, as 2030-01-31T12:00:00Z.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Class names that every silo's probabilities have; others are refused."),
    ] = None,
    about: About = None,
) -> None:
    r"""Plan a federated calibration before any data is seen.

    Says which coverage is guaranteed for every number of answers.

    Example:

      confide federated plan --silo north.json --silo south.json \
        --keys coordinator.key --alpha 0.1 --epsilon 1 --out plan.json
    """
    output.check(Kind.PLAN, *silo, keys)
    made = make_plan(
        [_silo(path) for path in silo],
        o.one_level(alpha),
        epsilon,
        method=method,
        score=score,
        candidates=parsed(candidates),
        unit=unit,
        delta=delta,
        dropouts=dropouts,
        liars=liars,
        missing="arbitrary" if arbitrary else "independent",
        colluding=colluding,
        n_min=n_min,
        n_typical=n_typical,
        closes=None if closes is None else read_time(closes),
        classes=None if classes is None else o.split(classes),
        about=stated_words(about),
    )
    output.write(made.sign(SiloKeys.load(keys)), "plan")
    say(f"privacy: {made.privacy() if epsilon is not None else 'none'}")
    say(f"candidate thresholds: {made.candidates.description}")
    for answers, promise in made.promises().items():
        say(f"  {answers} answers: {_promised(promise)}")


def _silo(path: Path) -> Silo:
    try:
        return Silo.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None


def _promised(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}" if promise.coverage else "no coverage is promised"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")


@app.command(cls=Command)
@command
def answer(
    source: o.Source,
    *,
    plan: PlanFile,
    keys: Keys,
    coordinator: Annotated[Path, typer.Option(metavar="FILE", help="The coordinator's public file, checked by you.")],
    budget: SiloBudget,
    output: o.Output,
    peer: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="secure-sum: public file of another silo.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", click_type=click.Choice(METHODS), help="Allow other methods than the private ones."),
    ] = None,
    columns: Columns,
    people: o.PeopleOptions,
) -> None:
    r"""Answer a plan from this silo's records: one small signed file.

    The loss is charged in this silo's own budget ledger before the records are
    used; what the ledger's limit or the budget does not allow is refused. Asked
    again, the same answer is written again and costs nothing.

    Example:

      confide federated answer records.csv --score-column s --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --budget 4 --out north-answer.json
    """
    what = _of_one_record(columns, people)
    output.check(Kind.ANSWER, *source.files, plan, keys, coordinator, budget.ledger, *(peer or ()))
    text = read_text(plan)
    read, _ = FederatedPlan.read(text)
    if what is not None and what.kind.name != read.score:
        raise InputError(f"the plan is for the score {read.score!r}; these columns give {what.kind.name!r}")
    policy = Policy(
        coordinator=_silo(coordinator).signing,
        budget=budget.budget,
        per_plan=budget.budget,
        methods=tuple(allow) if allow else ("private-qq", "secure-sum"),
        peers={other.name: other.agreement for other in map(_silo, peer or [])},
    )
    counts = _counted(source, what, columns, people, read.candidates, read.classes)
    earlier = budget.open().answered(read)
    message = answer_plan(text, counts, SiloKeys.load(keys), policy, budget.open(), now=datetime.now(UTC))
    if earlier is not None:
        say(f"earlier answer of {earlier} returned, whatever the records are now; nothing was charged")
    output.write(message, "answer")
    say(budget.spent())


@app.command(cls=Command)
@command
def aggregate(
    answers: Annotated[list[Path], typer.Argument(metavar="ANSWER...", help="The silos' answers.")],
    *,
    plan: PlanFile,
    output: o.Output,
    drop_refused: Annotated[
        bool, typer.Option("--drop-refused", help="Leave unusable answers out and say so, instead of stopping.")
    ] = False,
) -> None:
    r"""Make the calibration from the answers; it works with `confide predict`.

    Example:

      confide federated aggregate north-answer.json south-answer.json \
        --plan plan.json --out released.json
    """
    output.check(Kind.RELEASE, *answers, plan)
    released = aggregate_answers(read_text(plan), [read_text(path) for path in answers], drop_refused=drop_refused)
    if released.threshold == float("inf"):
        warn(f"the threshold is +inf: {everything(released.score)}; more silos have to answer")
    output.write(released.to_json(), f"{released}\nsaved")


@app.command(cls=Command)
@command
def report(
    source: o.Source,
    *,
    calibration: Annotated[Path, typer.Option(metavar="FILE", help="What aggregate wrote.")],
    silo: Annotated[str, typer.Option(metavar="NAME", help="This silo's name in the plan.")],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Privacy loss that the report may cost.")],
    budget: SiloBudget,
    again: Annotated[
        bool, typer.Option("--again", help="New records of the same people: count and charge anew.")
    ] = False,
    output: o.Output,
    columns: Columns,
    people: o.PeopleOptions,
) -> None:
    r"""Say how well the common threshold covers in this silo, privately.

    Counts this silo's covered records with noise, after charging its ledger.
    The file may be sent around: `confide report --silo-report FILE` shows it.
    The number of records becomes public. On records that did not take part in
    the calibration the interval holds exactly; name them with --dataset.
    For a threshold of the silo's own: `confide calibrate`.

    Example:

      confide federated report records.csv --score-column s \
        --calibration released.json --silo north --epsilon 0.5 \
        --ledger north.db --budget 4 --out north-report.json
    """
    what = _of_one_record(columns, people)
    privacy_loss("epsilon", epsilon)
    output.check(Kind.REPORT, *source.files, calibration, budget.ledger)
    released = load_release(calibration)
    if not isinstance(released, FederatedCalibration):
        raise InputError(f"calibration {str(calibration)!r} must be federated; `confide evaluate` measures others")
    known = [one.name for one in released.plan.silos]
    if silo not in known:
        raise InputError(f"--silo must be one of the plan's silos, {', '.join(known[:10])}; found {silo!r}")
    if what is not None and what.kind.name != released.score:
        raise InputError(f"the threshold is for the score {released.score!r}; these columns give {what.kind.name!r}")
    if released.threshold == float("inf"):
        raise InputError("the threshold is +inf and covers everything; there is nothing to estimate")
    counts = _counted(source, what, columns, people, Candidates.of([released.threshold]), released.classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EarlierReleaseWarning)
        made = coverage_in_silo(
            silo, counts, released.threshold, epsilon, ledger=budget.open(), budget=budget.budget, again=again
        )
    for one in caught:
        say(str(one.message))
    output.write(made.to_json(), f"{made}\nreport")
    say(budget.spent())


def _of_one_record(columns: Columns, people: o.PeopleOptions) -> What | None:
    """What is read of each record; a plan states its loss for one record of a person, and one threshold for all."""
    what = columns.what()
    if isinstance(what, Losses):
        raise InputError(
            "a federation calibrates one score of each record; --truth and --losses belong to `confide calibrate`"
        )
    if isinstance(what, Regressed) and len(what.kinds) > 1:
        raise InputError("a federation calibrates one threshold; plan --score cqr_low and --score cqr_high one by one")
    if people.people is not None and people.people.most > 1:
        raise InputError("--max-records-per-person must be 1 in a federation: its plan states the loss of one record")
    return what


def _counted(
    source: o.Source,
    what: What | None,
    columns: Columns,
    people: o.PeopleOptions,
    candidates: Candidates,
    classes: Classes | None,
) -> ScoreHistogram:
    with source.open("reading", what, columns.ways) as (opened, what, progress):
        if isinstance(what, Classified) and classes is not None:
            names = what.columns(opened)[1]
            try:
                names_among(classes, names, len(names))
            except InputError as error:
                raise InputError(f"the plan is for other classes: {error}") from None
        return score_histogram(
            opened,
            what,
            candidates,
            people=people.people,
            skip_incomplete=source.skip_incomplete,
            progress=progress,
        )
