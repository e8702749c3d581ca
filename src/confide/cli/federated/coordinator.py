"""Commands of the coordinator: `confide federated plan` and `aggregate`.

Also functions that read the files of a federation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import levels_of, optional_candidates, parse_metadata, split
from confide.cli.columns import Columns
from confide.cli.command import command
from confide.cli.output import capture_warnings, print_text, print_warning
from confide.cli.values import OptionalOutput, Output, PilotOptions
from confide.core import By
from confide.errors import CoverageWarning, InputError
from confide.federated import (
    Alternative,
    FederatedPlan,
    Policy,
    Refusal,
    Silo,
    SiloKeys,
    collusion_text,
    fingerprint,
    read_time,
    replies,
)
from confide.federated import aggregate as aggregate_answers
from confide.federated import compare as compare_methods
from confide.federated import plan as make_plan
from confide.support import FileKind, kind_of, read_text
from confide.tables import SIDES, class_keys


def read_messages(paths: Sequence[Path], kind: FileKind, *, drop_refused: bool = False) -> list[str]:
    """Read the messages in files.

    Raises
    ------
    Refusal
        If a file is of another known kind, unless the caller drops such files.
    """
    for path in paths:
        if not drop_refused and (found := kind_of(path)) not in (kind, FileKind.OTHER):
            raise Refusal("malformed", f"file {str(path)!r} is {found}, not {kind}; leave it out")
    return [read_text(path) for path in paths]


def read_silo(path: Path) -> Silo:
    """Read a public file of a silo or of the coordinator."""
    try:
        return Silo.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None


def public_files(paths: Sequence[Path]) -> list[Path]:
    """The given files, and the public files of silos in the given folders; other files there are ignored.

    Raises
    ------
    InputError
        If a folder has no public file.
    """
    files = []
    for path in paths:
        inside = sorted(one for one in path.iterdir() if kind_of(one) is FileKind.SILO) if path.is_dir() else [path]
        if not inside:
            raise InputError(
                "path", f"{str(path)!r} has no public file of a silo", remedy="`confide federated keygen` writes one"
            )
        files += inside
    return files


def read_named(paths: Sequence[Path]) -> list[Silo]:
    """Read the public files in files and folders, one silo for each name; copies of a file are one silo."""
    silos: dict[str, tuple[Path, Silo]] = {}
    for path in public_files(paths):
        silo = read_silo(path)
        other, before = silos.setdefault(silo.name, (path, silo))
        if before != silo:
            raise InputError(
                "name",
                f"{silo.name!r} is in two public files that differ, {str(other)!r} and {str(path)!r}",
                remedy="Keep the one with the right fingerprint and size, and move the other away",
            )
    return [silo for _, silo in silos.values()]


def silos_of_plan(paths: Sequence[Path], coordinator: Silo) -> tuple[list[Silo], list[Path]]:
    """The silos of a plan, and the files excluded: the coordinator's own public file in a folder."""
    alone = {path for path in paths if not path.is_dir()}

    def is_silo(path: Path) -> bool:
        silo = read_silo(path)
        return path in alone or (silo.name != coordinator.name and silo.signing != coordinator.signing)

    files = {path: is_silo(path) for path in public_files(paths)}
    return read_named([path for path, yes in files.items() if yes]), [path for path, yes in files.items() if not yes]


def read_policy(path: Path) -> Policy:
    """Read a policy file."""
    try:
        return Policy.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None


def plan_lines(plan: FederatedPlan) -> list[str]:
    """Lines about a plan: the silos it relies on, and its method."""
    lines = [f"{name}: {words}" for name, words in plan.method_rows]
    if (collude := collusion_text(plan)) is not None:
        lines.insert(0, f"{plan.protocol.reliance_label} the other silos: {collude}")
    return lines


def silo_rows(silo: Silo) -> list[tuple[str, str]]:
    """Name, fingerprint, size, ledger and time of a public file."""
    size = "secret" if silo.size is None else f"{silo.size}, public"
    ledger = [] if silo.ledger is None else [("ledger", fingerprint(silo.ledger, groups=4))]
    issued = [] if silo.issued is None else [("issued", f"{silo.issued}, signed by its own key")]
    return [("name", silo.name), ("fingerprint", fingerprint(silo.identity)), ("records", size), *ledger, *issued]


def policy_rows(policy: Policy) -> list[tuple[str, str]]:
    """The rows of a policy."""
    peers = [(f"peer {name}", fingerprint(identity)) for name, identity in policy.peers.items()]
    return [
        ("coordinator", fingerprint(policy.coordinator)),
        ("budget", f"{policy.budget:g} in all, {policy.per_plan:g} for one answer"),
        ("methods", ", ".join(policy.methods)),
        ("colluding silos", f"plans of sums must withstand at least {policy.least_colluding}"),
        *peers,
    ]


@dataclass(frozen=True)
class PlanOptions:
    """The options of a plan, except columns; the arguments of `confide.federated.plan`."""

    alpha: str
    epsilon: float
    method: str | None = None
    candidates: str | None = None
    unit: float | None = None
    delta: str | None = None
    dropouts: int = 0
    liars: int = 0
    arbitrary: bool = False
    colluding: int | None = None
    n_min: int | None = None
    n_typical: int | None = None
    closes: str | None = None
    groups: str | None = None
    by_class: bool = False
    about: tuple[str, ...] = ()

    def options(self, columns: Columns) -> dict[str, Any]:
        """The arguments that all methods share; the levels are in `levels`."""
        by, kept = self.by(columns), ("unit", "delta", "dropouts", "liars", "colluding", "n_min", "n_typical")
        classes = None if columns.classes is None else split(columns.classes)
        named = {} if by not in ("group", "class") else {"names": self.names(by, classes)}
        return {
            **{name: getattr(self, name) for name in kept},
            **named,
            "by": None if by == "level" else by,
            "score": None if columns.score == SIDES else columns.score,
            "candidates": optional_candidates(self.candidates),
            "missing": "arbitrary" if self.arbitrary else "independent",
            "closes": None if self.closes is None else read_time(self.closes),
            "classes": None if by == "class" else classes,
            "about": parse_metadata(self.about),
        }

    @property
    def levels(self) -> Any:
        """The level, or several."""
        return levels_of(self.alpha) if len(levels_of(self.alpha)) > 1 else self.alpha

    def by(self, columns: Columns) -> By | None:
        """The kind of parts with a threshold each; None for one threshold."""
        several = {
            "class": self.by_class,
            "group": self.groups is not None,
            "level": len(levels_of(self.alpha)) > 1,
            "side": columns.score == SIDES,
        }
        kinds: list[Any] = [by for by, requested in several.items() if requested]
        if len(kinds) > 1:
            raise click.UsageError(
                f"several levels in --alpha, --groups, --by-class and --score {SIDES} exclude each other; got "
                "several of them"
            )
        return kinds[0] if kinds else None

    def plan(self, silos: Sequence[Silo], columns: Columns) -> FederatedPlan:
        """Make the plan."""
        return make_plan(silos, self.levels, self.epsilon, method=self.method, **self.options(columns))

    def compared(
        self, silos: Sequence[Silo], columns: Columns, sample: Any, also: Sequence[str]
    ) -> tuple[Alternative, ...]:
        """Compare the methods for the same options."""
        return compare_methods(silos, self.levels, self.epsilon, pilot=sample, also=also, **self.options(columns))

    def names(self, by: By | None, classes: Any = None) -> Any:
        """The names of the groups or classes; None otherwise."""
        if by == "class":
            return class_keys(tuple(classes))
        return split(str(self.groups)) if by == "group" else None


@command("federated plan")
def plan(
    *,
    silo: tuple[Path, ...],
    keys: Path,
    terms: PlanOptions,
    compare: bool = False,
    also: tuple[str, ...] = (),
    pilot: PilotOptions,
    output: OptionalOutput,
) -> None:
    r"""Plan a federated calibration before any data are read.

    States the guaranteed coverage for every number of answers. Without
    --method it selects the method that suits the silos' sizes, as --compare
    recommends. --classes lists the classes that every silo must have. Each
    silo answers several levels, such as --alpha 0.2,0.1, or --groups,
    --by-class or --score cqr_sides with one file, for one charge.

    Example:

      confide federated plan --silo north.json --silo south.json \
        --keys coordinator.key --alpha 0.1 --epsilon 1 --out plan.json
    """
    output.check(FileKind.PLAN, *public_files(silo), keys, *pilot.files)
    if output.out is None and not compare:
        raise click.UsageError("--out is missing; it is optional only with --compare")
    coordinator = SiloKeys.load(keys)
    silos, own = silos_of_plan(silo, coordinator.public_keys())
    made: FederatedPlan | None
    if compare:
        sample, _ = pilot.sample()
        with capture_warnings() as caught:
            found = terms.compared(silos, pilot.columns, sample, also)
        caught.warn()
        for line in comparison_lines(found, silos):
            print_text(line)
        if output.out is None:
            return
        made = next((one.plan for one in found if one.recommended and one.plan is not None), None)
        if made is None:
            raise InputError("method", "has no plan for these silos: " + "; ".join(str(one.reason) for one in found))
    else:
        with capture_warnings() as caught:
            made = terms.plan(silos, pilot.columns)
        caught.warn()
    output.write(made.sign(coordinator))
    for note in made.remarks:
        print_warning(note)
    print_text(f"plan: {output.out}")
    for path in own:
        print_text(f"not invited: {path}, the coordinator's own; add --silo with this file to invite it")
    if terms.method is None:
        print_text(f"method: {made.method}, which suits these silos (--compare shows why)")
    print_text(f"privacy: {made.privacy()}")
    print_text(f"candidate thresholds: {made.candidates.description}")
    for line in plan_lines(made):
        print_text(line)
    print_text(f"promised {made.assumed}:")
    for line in made.promise_lines:
        print_text(f"  {line}")


def comparison_lines(found: Sequence[Alternative], silos: Sequence[Silo]) -> list[str]:
    """A line for every alternative, with the recommended one marked, and a legend."""
    lines = ["expected coverage for uniform and for bell-shaped scores over the candidates; not a promise:"]
    for one in found:
        lines.append(f"{'->' if one.recommended else '  '} {_named(one)}: {_expected(one)}")
    if any(silo.size is None for silo in silos):
        lines.append(
            "sizes are secret, which only private-qq allows; with public sizes (confide federated public --size) "
            "you can use secure-sum, whose promise holds for non-IID silos"
        )
    best = next((one for one in found if one.recommended), None)
    if best is not None and best.plan is not None and best.left_out:
        names = {silo.name for silo in best.plan.silos}
        lines.append(f"left out: {', '.join(silo.name for silo in silos if silo.name not in names)}")
    return lines


def _named(one: Alternative) -> str:
    if not one.left_out:
        return f"{one.method}, all {one.silos} silos"
    return f"{one.method}, the {one.silos} largest silos, without {one.left_out:.0%} of the records"


def _expected(one: Alternative) -> str:
    if one.plan is None:
        return f"none: {one.reason}"
    parts = [f"{one.expected:.4f}, {one.expected_gaussian:.4f}"]
    if one.infinite >= 0.0005:
        parts.append(f"+inf in {one.infinite:.1%}")
    parts.append(one.plan.assumed)
    if one.on_pilot is not None:
        parts += [f"{name} {words}" for name, words in one.on_pilot.in_words]
    return "; ".join(parts)


@command("federated aggregate")
def aggregate(
    *, answers: tuple[Path, ...], plan: Path, output: Output, keys: Path | None = None, drop_refused: bool = False
) -> None:
    r"""Compute the calibration from the answers; use it with `confide predict`.

    Example:

      confide federated aggregate north-answer.json south-answer.json \
        --plan plan.json --keys coordinator.key --out released.json
    """
    output.check(FileKind.RELEASE, *answers, plan, keys)
    text, messages = read_text(plan), read_messages(answers, FileKind.ANSWER, drop_refused=drop_refused)
    signing = None if keys is None else SiloKeys.load(keys)
    with capture_warnings(CoverageWarning) as caught:
        released = aggregate_answers(text, messages, keys=signing, drop_refused=drop_refused)
    output.save(released.to_json(), f"{released}\nsaved")
    if line := _spread(replies(text, messages, drop_refused=drop_refused)):
        print_text(line)
    caught.warn()


def _spread(replies: Mapping[str, float]) -> str | None:
    """The range of the silos' replies, the only indication of non-IID silos."""
    if len(replies) < 2:
        return None
    (lowest, low), *_, (highest, high) = replies.items()
    return f"replies: from {low:.6g} ({lowest}) to {high:.6g} ({highest}); IID silos have similar replies"
