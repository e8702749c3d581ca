"""Files of a federation: public files of silos and policies, from files and folders, and their descriptions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confide.errors import InputError
from confide.federated import FederatedPlan, Policy, Refusal, Silo, fingerprint
from confide.support import FileKind, kind_of, read_text, require

# Reading


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Turn the refusal of a file's content into an error about its path."""
    try:
        yield
    except Refusal as refusal:
        raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None


def read_silo(path: Path) -> Silo:
    """Read a public file of a silo or of the coordinator."""
    with usable(path):
        return Silo.from_json(read_text(path))


def read_policy(path: Path) -> Policy:
    """Read a policy file."""
    with usable(path):
        return Policy.from_json(read_text(path))


def public_files(paths: Sequence[Path]) -> list[Path]:
    """The given files, and the public files of silos in the given folders, each of which has one or more."""
    files = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if kind_of(file) is FileKind.SILO)
        must = f"{str(path)!r} has no public file of a silo"
        require("path", inside, must, remedy="`confide federated keygen` writes one")
        files += inside
    return files


def read_named(paths: Sequence[Path]) -> list[Silo]:
    """Read the public files in files and folders, one silo for each name; copies of a file are one silo."""
    silos: dict[str, tuple[Path, Silo]] = {}
    for path in public_files(paths):
        silo = read_silo(path)
        first_path, first = silos.setdefault(silo.name, (path, silo))
        must = f"{silo.name!r} is in two public files that differ, {str(first_path)!r} and {str(path)!r}"
        remedy = "Keep the one with the right fingerprint and size, and move the other away"
        require("name", first == silo, must, remedy=remedy)
    return [silo for _, silo in silos.values()]


def silos_of_plan(paths: Sequence[Path], coordinator: Silo) -> tuple[list[Silo], list[Path]]:
    """The silos of a plan, and the files excluded: the coordinator's own public file in a folder."""

    def is_coordinator(silo: Silo) -> bool:
        return silo.name == coordinator.name or silo.signing == coordinator.signing

    files = list(dict.fromkeys(public_files(paths)))
    in_folders = {file: read_silo(file) for file in files if file not in paths}
    excluded = [file for file, silo in in_folders.items() if is_coordinator(silo)]
    return read_named([file for file in files if file not in excluded]), excluded


# Descriptions


def reliance_text(plan: FederatedPlan) -> str | None:
    """A line about the silos that a plan relies on; None if it relies on none."""
    return None if plan.first.reliance is None else f"{plan.first.reliance_label} {plan.first.reliance}"


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
