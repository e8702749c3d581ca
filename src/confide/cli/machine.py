"""Commands about this installation: `confide audit` and `demo`."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from confide.cli.command import command
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.output import print_result, print_text, progress_bar
from confide.cli.values import Findings
from confide.mechanisms import Neighbors
from confide.support import FileKind


@dataclass(frozen=True)
class Subject:
    """An external mechanism, and its claims."""

    mechanism: str | None = None
    epsilon: float | None = None
    alpha: str | None = None
    neighbors: Neighbors | None = None
    records: int = 8
    least_records: int | None = None


@command("audit")
def audit(
    *, subject: Subject, seconds: float | None = None, long: bool = False, level: float = 1e-4, output: Findings
) -> int:
    """Check the privacy and coverage claims on this machine, with the installed versions.

    Enumerates small cases exactly, tests the sampler against its exact law, attacks the worst neighbours of many sizes,
    tests whether every call has fresh noise, and checks coverage on difficult distributions. It reads no data. It takes
    about two minutes of one processor (--long: twenty). Exit code 5 if a claim fails.

    Example: confide audit --mechanism mine:threshold --epsilon 1 --alpha 0.1
    """
    from confide.audit import BRIEF, LONG, SECONDS, audit_library, foreign_subject, load
    from confide.audit import audit as run_audit

    output.check(FileKind.AUDIT)
    announce = None if output.as_json or sys.stderr.isatty() else lambda name: click.echo(f"auditing {name}", err=True)
    with ExitStack() as stack:

        def watch(runs: int) -> Callable[[int], object]:
            return stack.enter_context(progress_bar("auditing", lambda: runs))

        if subject.mechanism is None:
            report = audit_library(LONG if long else BRIEF, level=level, on_subject=announce, on_start=watch)
        else:
            claims = {name: value for name, value in vars(subject).items() if name != "mechanism"}
            foreign = foreign_subject(load(subject.mechanism), subject.mechanism, **claims)
            limit = (SECONDS if seconds is None else seconds) * (10 if long else 1)
            report = run_audit([foreign], seconds=limit, level=level, on_subject=announce, on_start=watch)
    output.write(report.to_json())
    print_result(lambda: json.loads(report.to_json()), report, as_json=output.as_json)
    return DONE if report.passed else CLAIM_FAILED


@command("demo")
def demo(*, out: Path = Path("demo-output"), force: bool = False) -> None:
    """Run an example on real data, with explanations.

    Takes some seconds: trains a model on handwritten digits, calibrates it
    privately, predicts sets for unseen images, and writes the calibration, the
    sets and the probabilities to files that you can continue with.

    Example:

      confide demo --out demo-output
    """
    from confide.demo import run

    print_text(run(out, force=force))
