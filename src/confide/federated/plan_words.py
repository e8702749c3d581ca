"""What plans say, for people: the same words and digits wherever they are printed."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Protocol

from confide.federated.identities import fingerprint, roster
from confide.federated.keys import Silo
from confide.federated.protocols import DealtVectors, FederatedProtocol, Promise
from confide.support import Shown, aligned


class Planned(Protocol):
    """One plan, or several under one signature."""

    @property
    def silos(self) -> tuple[Silo, ...]:
        """Who is invited."""

    @property
    def coordinator(self) -> Silo | None:
        """Who signed it; None before that."""

    @property
    def protocol(self) -> FederatedProtocol:
        """What every silo runs."""


class ShownPlan(Shown):
    """A plan that shows itself: what is asked and paid, and what is promised for how many answers."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What a silo is asked, what it pays and what is promised, (name, value) each."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is unusual about what is asked for."""
        raise NotImplementedError

    @property
    def promise_lines(self) -> list[str]:
        """What is promised for the numbers of answers; for each of several levels, and once for all groups."""
        raise NotImplementedError

    def __str__(self) -> str:
        promised = "\n".join(f"  {line}" for line in self.promise_lines)
        notes = "".join(f"{note}\n" for note in self.remarks)
        return f"{notes}federated plan; nothing is paid by looking at it\n{aligned(self.rows)}\n{promised}"

    def _brief(self) -> str:
        said = dict(self.rows)
        silos = f"{said['silos'].partition(',')[0]} silos"
        return f"{said['method']}, {said['asked for']}, {silos}, each pays at most {said['a silo pays at most']}"


def identity_rows(plan: Planned, *, silos: bool) -> list[tuple[str, str]]:
    """The fingerprints of coordinator and silos, and one number for all of them, as far as the plan states them."""
    if plan.coordinator is None:
        return []
    rows = [(f"coordinator {plan.coordinator.name}", fingerprint(plan.coordinator.identity))]
    if silos:
        rows += [(f"silo {silo.name}", fingerprint(silo.identity) + _records(silo)) for silo in plan.silos]
        rows += [("roster, all of them", roster_number([plan.coordinator, *plan.silos]))]
    return rows


def roster_number(everybody: Iterable[Silo]) -> str:
    """One number for coordinator and silos, longer than that of one of them: see `confide.federated.fingerprint`."""
    return fingerprint(roster(everybody), groups=12)


def _records(silo: Silo) -> str:
    return "" if silo.size is None else f", {silo.size} records"


def colluders(plan: Planned) -> str | None:
    """How many colluding silos the privacy of an answer withstands; None if it relies on no other silo."""
    count = plan.protocol.colluders
    if count is None:
        return None
    who = f"at most {count} of the {len(plan.silos)} silos" if count else "no silo"
    return f"{who} may collude with the coordinator"


def openers(plan: Planned) -> str | None:
    """Who opens the sum by a second message; None if there is none."""
    if not isinstance(plan.protocol, DealtVectors):
        return None
    return f"{plan.protocol.needed} of {len(plan.protocol.openers)} silos, by a second message that costs nothing"


def ranges(promises: Mapping[int, Promise]) -> Iterator[tuple[str, str]]:
    """Numbers of answers, the many first, for which the same words are said."""
    for words, numbers in groupby(promises, key=lambda answers: _promised(promises[answers])):
        most, *others = numbers
        yield f"{others[-1]} to {most}" if others else f"{most}", words


def _promised(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}" if promise.coverage else "no coverage is promised"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")
