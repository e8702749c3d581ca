"""Bounds on the length of the answers and of the release of a plan, checked when it is made, before any charge.

The bounds are in characters. They follow from the plan alone, so that writer and reader agree on the evidence in a
signed release: the answers themselves, or their digests if the answers would make it too long.
"""

import json
from collections.abc import Sequence
from typing import Protocol

from confide.errors import InputError
from confide.federated.envelope import MOST_CHARACTERS, envelope
from confide.federated.keys import Silo
from confide.federated.protocols import Channel, Shared
from confide.federated.terms import MOST_CANDIDATES
from confide.ledger import MOST_RELEASE as MOST_ANSWER
from confide.support import library_versions

MOST_CHARACTERS_OF_RELEASE = 2 * MOST_CHARACTERS
_NESTED = 3
"""Additional indentation of each line of a plan or an answer inside a release."""
_ENTRY = 40
"""Overhead of a name or number in a list or object of the release."""
_HEAD = 4_000
"""Guarantee, privacy loss, versions and signature, which every release states once."""


class Asked(Protocol):
    """A plan of one threshold or of several."""

    @property
    def silos(self) -> tuple[Silo, ...]:
        """The invited silos."""

    @property
    def channel(self) -> Channel:
        """How the silos' vectors are added."""

    @property
    def asks(self) -> Sequence[object]:
        """The parts, one for each threshold."""

    @property
    def width(self) -> int:
        """The total length of one silo's vectors."""


def refuse_too_long(text: str, plan: Asked) -> None:
    """Reject a signed plan whose answers would be too long for a ledger or whose release could not be read.

    Raises
    ------
    InputError
        With the bound.
    """
    if _longest_answer(plan) > MOST_ANSWER:
        raise InputError(
            "plan",
            (
                f"the answers to {len(plan.asks)} thresholds would have more than the {MOST_ANSWER} "
                "characters that a ledger keeps"
            ),
            remedy="Plan fewer groups, classes or levels at once",
        )
    if _characters(text, plan, whole=False) > MOST_CHARACTERS_OF_RELEASE:
        raise InputError(
            "plan",
            (
                f"the release of {len(plan.asks)} thresholds with {len(plan.silos)} silos would have more "
                f"than {MOST_CHARACTERS_OF_RELEASE} characters"
            ),
            remedy="Plan fewer of them at once",
        )


def tells_whole(text: str, plan: Asked) -> bool:
    """Whether the answers of all silos, each private by itself, fit into a signed release."""
    written = json.dumps(json.loads(text), indent=1) + "\n"  # as a release contains it
    return _characters(written, plan, whole=True) <= MOST_CHARACTERS_OF_RELEASE


def _characters(text: str, plan: Asked, *, whole: bool) -> int:
    silos, channel = plan.silos, plan.channel
    names = sum(len(silo.name) + _ENTRY for silo in silos)
    evidence = _longest_answer(plan) if whole else 64
    total = _nested(text) + _HEAD + 3 * _ENTRY * len(plan.asks) + 3 * names + len(silos) * evidence
    if isinstance(channel, Shared):
        of_sum = 4 * (8 * plan.width // 3 + 2)
        part = _HEAD + of_sum + len(silos) * (len(str(len(silos))) + 10)
        total += names + 64 * len(silos) + len(channel.openers) * part
    return total


def _longest_answer(plan: Asked) -> int:
    """The maximum length of an answer of candidates without its silo's name; vectors of sums are bounded separately."""
    replies = [_LONGEST_REPLY] * len(plan.asks) if plan.channel.each else []
    content = {
        "plan": "0" * 64,
        "session": "0" * 32,
        "silo": "",
        "answered": "2030-01-31T12:00:00Z",
        "versions": {name: version + _NEWER for name, version in library_versions().items()},
        "replies": replies,
    }
    return _nested(envelope("answer", content, "0" * 64, "0" * 128))


_LONGEST_REPLY = {"candidate": MOST_CANDIDATES, "threshold": -1.2345678901234567e-300}
_NEWER = ".dev1234"
"""Allowance for longer version numbers of libraries in a silo."""


def _nested(text: str) -> int:
    return len(text) + _NESTED * text.count("\n")
