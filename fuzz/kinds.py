"""Every kind of document that an attacker may have written: its reader, and the properties of every value read.

For every file, the reader raises an error of the library in one line, or returns a value that is written and read again
as the same. `changed` starts from valid documents, changes a few of their fields and signs them again, so that a fuzzer
passes checksums and signatures.
"""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from confide import federated
from confide.core import Document, Release
from confide.errors import ConfideError
from confide.federated.answers import message_head, read_answer
from confide.federated.messages import sign
from confide.reports.example import worked_example
from confide.reports.release_page import evaluation_section
from confide.reports.words import headline
from confide.support import to_text
from fuzz.source import Source, change, one_line, with_checksum
from fuzz.valid import (
    evaluated,
    federation,
    policy,
    privately_evaluated,
    releases,
    replied,
    steep,
    team,
    watches,
)
from tests.federated.helpers import content_of


class Kind(NamedTuple):
    """A kind of document.

    Parameters
    ----------
    read
        Its reader.
    valid
        Valid documents as JSON values: of a signed message, its content.
    write
        The text of a document, with a valid checksum or signature; None if there is none.
    holds
        Properties of the value read, in addition to being written and read again as the same.
    seeds
        Texts that once caused a failure.
    """

    read: Callable[[str], Any]
    valid: Callable[[], tuple[Any, ...]]
    write: Callable[[Any], str | None] = with_checksum
    holds: Callable[[Any], object] = str
    seeds: Callable[[], tuple[str, ...]] = tuple

    def check(self, text: str | None) -> bool:
        """Return whether a text is read; if so, check its properties."""
        if text is None:
            return False
        try:
            read = self.read(text)
        except ConfideError as error:
            one_line(error)
            return False
        self.holds(read)
        assert str(read).encode()
        if hasattr(read, "to_json"):
            assert self.read(read.to_json()) == read
        return True

    def changed(self, data: bytes) -> None:
        """Check a valid document with one to three of its fields changed, chosen by the bytes."""
        source, valid = Source(data), self.valid()
        self.check(self.write(change(valid[source.below(len(valid))], source)))

    def text(self, data: bytes) -> None:
        """Check an arbitrary text."""
        self.check(data.decode("utf-8", "surrogateescape"))


def _release_holds(read: Any) -> None:
    assert read.privacy.epsilon >= 0
    for part in read.parts.values():
        assert 0 <= part.guarantee.coverage <= 1
        assert not math.isnan(part.threshold)
    assert headline(read)
    example = worked_example(read)
    assert example is None or "interval" in example.lead or example.tables


def _evaluation_holds(read: Any) -> None:
    assert read.privacy.epsilon > 0
    for found in read.findings.values():
        parts = [part for table in found.tables for part in table]
        assert all(0 <= part.low <= part.high <= 1 for part in (found.coverage, *parts))
    assert to_text(evaluation_section(read)).encode()


def _watch_holds(read: Any) -> None:
    assert 0 < read.settings.noise_epsilon <= read.settings.epsilon
    assert len(read.points) == len(read.looks)
    for point in read.points:
        assert not math.isnan(point.log_evidence)
        assert point.low is None or (0 <= point.low <= 1 and 0 <= point.high <= 1)  # crossed: coverage has changed


def _policy_holds(read: Any) -> None:
    assert set(read.methods) <= set(federated.METHODS)


def _share_holds(read: Any) -> None:
    assert read.threshold == Document.from_json(replied().share).threshold


def _signed(kind: str, keys: Callable[[], federated.SiloKeys]) -> Callable[[Any], str | None]:
    def write(content: Any) -> str | None:
        try:
            return sign(kind, content, keys().signing)
        except ValueError:  # no JSON
            return None

    return write


def _contents(*texts: Callable[[], str]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(content_of(text()) for text in texts)


def _read_plan(text: str) -> Any:
    return federated.read_plan(text)


def _plan_holds(read: Any) -> None:
    assert all(read.loss(0) >= part.loss(0) for part in read.single_plans)


def _of_plan(read: Callable[..., Any], plan: Callable[[], str], *more: Callable[[], Any]) -> Callable[[str], Any]:
    return lambda text: read(_read_plan(plan()), text, *(one() for one in more))


def _texts(*written: Callable[[], str]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(json.loads(text()) for text in written)


def _message(kind: str, read: Callable[[str], Any], keys: Callable[[], Any], *texts: Any, **how: Any) -> Kind:
    return Kind(read, _contents(*texts), _signed(kind, keys), **how)


def _answer(plan: Callable[[], str], keys: Callable[[], federated.SiloKeys], text: Callable[[], str]) -> Kind:
    return _message("answer", _of_plan(read_answer, plan), keys, text)


KINDS: dict[str, Kind] = {
    "release": Kind(Release.from_json, releases, holds=_release_holds, seeds=lambda: (steep(),)),
    "evaluation": Kind(
        Document.from_json,
        lambda: (*(one for _, one in evaluated()), *privately_evaluated()),
        holds=_evaluation_holds,
    ),
    "watch": Kind(Document.from_json, watches, holds=_watch_holds),
    "policy": Kind(federated.Policy.from_json, _texts(lambda: policy().to_json()), json.dumps, _policy_holds),
    "federated_release": Kind(
        Document.from_json,
        _texts(
            lambda: federation().released,
            lambda: replied().released,
            *(lambda at=at: team().released[at] for at in (0, 1)),
        ),
    ),
    "own_share": Kind(Document.from_json, _texts(lambda: replied().share), with_checksum, _share_holds),
    "silo": _message(
        "silo",
        federated.Silo.from_json,
        lambda: federation().silos[0],
        lambda: federation().silos[0].public(60).to_json(),
    ),
    "plan": _message(
        "plan", _read_plan, lambda: federation().coordinator, lambda: federation().plan, holds=_plan_holds
    ),
    "several_plans": _message(
        "plan",
        _read_plan,
        lambda: team().coordinator,
        *(lambda at=at: team().plans[at] for at in (0, 1)),
        holds=_plan_holds,
    ),
    "head": _message("answer", message_head, lambda: federation().silos[0], lambda: federation().answers[0]),
    "answer": _answer(lambda: federation().plan, lambda: federation().silos[0], lambda: federation().answers[0]),
    "masked_answer": _answer(lambda: replied().text, lambda: replied().silo, lambda: replied().answer),
    "answer_to_levels": _answer(lambda: team().plans[0], lambda: team().silo, lambda: team().answers[0]),
    "answer_to_groups": _answer(lambda: team().plans[1], lambda: team().silo, lambda: team().answers[1]),
}
"""By the names that `nox -s fuzz` prints."""
