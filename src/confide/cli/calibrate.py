"""`confide calibrate`: a file of calibration records in, a private calibration out."""

import json
import warnings
from pathlib import Path
from typing import Any

from confide.cli import budget as b
from confide.cli import groups as g
from confide.cli import options as o
from confide.cli.candidates import parse_candidates
from confide.cli.columns import Columns
from confide.cli.counting import Asked, from_engine, from_file
from confide.cli.engine import people_of
from confide.cli.output import check_output, emit, say, warn
from confide.errors import CoverageWarning, InputError
from confide.planning.plan import Plan, make_plan
from confide.planning.request import check_request
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.scores.kinds import score_kind
from confide.support.files import new_file
from confide.tables.connect import names_an_engine


def calibrate(
    file: o.Source,
    *,
    table: o.TableName = None,
    probabilities: o.Probabilities = None,
    label: o.Label = None,
    classes: o.Classes = None,
    prediction: o.Prediction = None,
    target: o.Target = None,
    score_column: o.ScoreColumn = None,
    score: o.Score = None,
    alpha: o.Alpha,
    delta: o.Delta = None,
    epsilon: o.Epsilon = None,
    rho: o.Rho = None,
    neighbors: o.NeighborsOption = "add_remove",
    records_per_person: o.RecordsPerPerson = 1,
    person: o.Person = None,
    max_records_per_person: o.MostPerPerson = None,
    order: o.Order = None,
    sample: o.Sample = None,
    n: o.PublicNumber = None,
    n_min: o.NMin = 1,
    n_typical: o.NTypical = None,
    selector: o.SelectorOption = None,
    mechanism: o.MechanismOption = "slopes",
    candidates: o.CandidatesSpec = None,
    by: g.ByColumn = None,
    groups: g.GroupNames = None,
    by_class: g.ByClass = False,
    partition: g.Partition = None,
    ledger: b.LedgerOption = None,
    dataset: b.DatasetOption = None,
    group: b.GroupOption = None,
    ledger_key: b.LedgerKey = None,
    out: o.Out,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Calibrate on records with known truth, privately.

    TABLE is a file, a glob of Parquet files, a database or a Spark master
    with --table; one record per row. Databases and Spark count where the data
    is: only the counts per bin come back.
    One number is computed for each record: from class probabilities and
    labels, from predictions and targets, or it is a column already. From these
    one threshold is drawn with noise. The calibration that is written holds
    the threshold, what it promises, and the privacy it cost; nothing else
    about the records leaves. Every run costs its epsilon anew.

    With --by or --by-class there is one threshold per group or class, from
    the same pass; each group is covered on its own.

    Example:

      confide calibrate records.parquet --probabilities 'p_*' --label label \
        --alpha 0.1 --epsilon 1 --out cal.json
    """
    columns = Columns(score_column, score, probabilities, label, classes, prediction, target)
    columns.check_truth()
    name = columns.score_name
    chosen = score_kind(name).candidates() if candidates is None else parse_candidates(candidates)
    settings: dict[str, Any] = {
        "alpha": alpha,
        "epsilon": epsilon,
        "rho": rho,
        "neighbors": neighbors,
        "n_min": n_min,
        "n_typical": n_typical,
        "delta": delta,
        "records_per_person": records_per_person,
        "selector": selector,
        "slopes": None,
        "shift": None,
        "mechanism": mechanism,
    }
    people = people_of(person, max_records_per_person, order, sample)
    if people is not None:
        if records_per_person not in (1, people.most):
            raise InputError("--records-per-person must be left out with --max-records-per-person")
        settings["records_per_person"] = people.most
    engine = people is not None or table is not None or names_an_engine(file)
    divided = g.grouping(by, groups, by_class, partition, columns, with_ledger=ledger is not None)
    _check_number(n, neighbors, divided, needed=engine and ledger is not None)
    request = check_request(n=1 if n is None else n, candidates=chosen.size, **settings)
    check_output(out, force=force)
    account = b.open_account(file, ledger, dataset, group, ledger_key)
    asked = Asked(columns, chosen, {**settings, **account}, n, divided)
    released: Calibration | GroupCalibration
    with new_file(out, overwrite=force) as part, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoverageWarning)
        released = from_engine(asked, file, table, people) if engine else from_file(asked, Path(file))
        part.write_text(released.to_json(), encoding="utf-8")
    plan = None
    if isinstance(released, Calibration):
        request = check_request(n=released.n or 1, candidates=chosen.size, **settings)
        slopes = request.mechanism == "slopes"
        plan = make_plan(request, request.n or request.n_typical) if slopes else None  # n only where it is public
    _report(released, plan, str(out), _notes(caught), as_json=as_json)


def _check_number(n: int | None, neighbors: str, divided: g.Grouping | None, *, needed: bool) -> None:
    """Refuse --n where the number of records is secret, and its absence where the price depends on it."""
    if n is not None and divided is not None:
        raise InputError("--n must be left out with --by and --by-class: the sizes of groups stay secret")
    if n is not None and neighbors != "replace_one":
        raise InputError(
            "--n must be left out with --neighbors add_remove, which keeps their number secret; see --n-typical"
        )
    if n is None and neighbors == "replace_one" and divided is None and needed:
        raise InputError(
            "--n must be given with --neighbors replace_one and --ledger, which is charged before the table is asked"
        )


def _notes(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, CoverageWarning)]


def _report(
    calibration: Calibration | GroupCalibration, plan: Plan | None, out: str, notes: list[str], *, as_json: bool
) -> None:
    for note in notes:
        warn(note)
    if as_json:
        emit(
            {
                "out": out,
                "calibration": json.loads(calibration.to_json()),
                "expected": None
                if plan is None
                else {"records": plan.n, "coverage": plan.expected_coverage, "excess": plan.expected_excess},
                "warnings": notes,
            }
        )
        return
    if plan is None or isinstance(calibration, GroupCalibration):
        say(f"{calibration}\nsaved: {out}")
        return
    known = "" if calibration.n is not None else ", a public guess: the true number stays secret"
    say(str(calibration))
    say(
        f"cost: mean coverage {plan.expected_coverage:.4f} instead of {float(1 - calibration.alpha):g}, as if "
        f"{plan.expected_excess:.1f} records more were covered\n"
        f"      (on evenly spread scores, with {plan.n} records{known})"
    )
    say(f"saved: {out}")
