"""What adapters to federated engines share: what a silo brings, how it replies, and what came back.

Of what goes wrong in a silo nothing travels but a code of `confide.federated.refusals`.

Over an engine: the second question of a sum with dropouts, asked of every node, also of the silent ones.

Openers help to open one list of answers. So the list can be kept in a file before anybody is asked, and whoever tries
again asks about the same one.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import InputError
from confide.federated.aggregate import aggregate
from confide.federated.answer import Scores, answer
from confide.federated.answers import read_answer
from confide.federated.calibration import FederatedRelease
from confide.federated.envelope import parse
from confide.federated.keys import SiloKeys
from confide.federated.open_part import open_part
from confide.federated.openings import addressee, openings
from confide.federated.plan import AnyPlan
from confide.federated.policy import Policy
from confide.federated.refusals import CODES, Refusal
from confide.federated.several_plans import read_plan
from confide.federated.silo_ledger import SiloLedger
from confide.support import write_text

_SHOWN = 10

__all__ = ["NotReleasedError", "Round", "SiloSetup"]


@dataclass(frozen=True)
class SiloSetup:
    """All that a silo brings, read from its own disk and never from a request.

    Parameters
    ----------
    scores
        Its conformity scores, or a histogram over the plan's candidates; or what reads them, called for an answer
        only: to help to open a sum takes no records.
    keys, policy, ledger
        As for `confide.federated.answer`.
    groups
        The group or class of each score, for plans with a threshold for each; or what reads them.
    """

    scores: Scores | Callable[[], Scores]
    keys: SiloKeys = field(repr=False)
    policy: Policy
    ledger: SiloLedger
    groups: ArrayLike | Callable[[], ArrayLike | None] | None = None

    @classmethod
    def load(cls, folder: str | Path) -> "SiloSetup":
        """From a folder of the silo: `scores.npy`, `keys.json`, `policy.json`, and its ledger `budget.db`.

        If there is a `groups.npy`, it has the group or class of each score.
        """
        folder = Path(folder)

        def groups() -> ArrayLike | None:
            path = folder / "groups.npy"
            return np.load(path, allow_pickle=False) if path.exists() else None

        return cls(
            scores=lambda: np.load(folder / "scores.npy", allow_pickle=False),
            keys=SiloKeys.load(folder / "keys.json"),
            policy=Policy.load(folder / "policy.json"),
            ledger=SiloLedger(folder / "budget.db"),
            groups=groups,
        )


@dataclass
class Round:
    """What came back from one question; nodes are called as the engine calls them.

    Parameters
    ----------
    answers
        Node -> message.
    refused
        Node -> code.
    errors
        Node -> the engine's error code; its text is dropped.
    silent
        Nodes that did not answer in time.
    opening
        What came back from the second question, of a sum with dropouts: parts of the sum for answers.
    listed
        The answers whose sum the second question was about.

    Examples
    --------
    >>> print(Round(answers={7: "..."}, refused={8: "budget-spent"}, silent=[9]))
    1 answered; refused: 8 (budget-spent); silent: 9
    """

    answers: dict[Any, str] = field(default_factory=dict)
    refused: dict[Any, str] = field(default_factory=dict)
    errors: dict[Any, int | str] = field(default_factory=dict)
    silent: list[Any] = field(default_factory=list)
    opening: "Round | None" = None
    listed: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[Any]:
        """All that were asked."""
        return [*self.answers, *self.refused, *self.errors, *self.silent]

    def take(self, node: Any, content: Mapping[str, Any]) -> None:
        """Sort a node's reply in: its message, or a code of the public list."""
        if isinstance(message := content.get("answer"), str):
            self.answers[node] = message
        else:
            code = str(content.get("refused"))
            self.refused[node] = code if code in CODES else "malformed"

    def close(self, asked: Iterable[Any]) -> "Round":
        """Of all who were asked, those who have not replied are silent."""
        self.silent = sorted(set(asked) - set(self.nodes))
        return self

    def __str__(self) -> str:
        said = [f"{len(self.answers)} answered"]
        for what, codes in (("refused", self.refused), ("errors", self.errors)):
            if codes:
                said.append(f"{what}: {listed_names(f'{node} ({code})' for node, code in sorted(codes.items()))}")
        if self.silent:
            said.append(f"silent: {listed_names(map(str, self.silent))}")
        return "; ".join(said) + (f"; asked to open the sum, {self.opening}" if self.opening else "")


class NotReleasedError(Refusal):
    """The messages that came are not enough for a release.

    Parameters
    ----------
    why
        What was not enough.
    missing
        Names of the silos in the plan of which no usable answer came.
    asked
        What came back.
    """

    def __init__(self, why: Refusal, missing: tuple[str, ...], asked: Round) -> None:
        self.missing, self.asked = missing, asked
        without = f"no usable answer came from {listed_names(map(repr, missing))} " if missing else ""
        super().__init__(why.code, f"nothing is released; {without}({asked}); {str(why).removeprefix(f'{why.code}: ')}")


def reply(request: Mapping[str, Any], setup: Callable[[], SiloSetup], log: logging.Logger) -> dict[str, str]:
    """A silo's reply to a request: its message, or a code and nothing else; why stays in `log`.

    A request holds a signed plan, to be answered; or a plan and openings, of which the silo's own is for it.
    """
    try:
        silo = setup()
    except Exception:  # also a refusal: of the silo's own files, which are not the coordinator's matter
        return _failed(log)
    try:
        with _warnings_to(log):
            return {"answer": _message(request, silo)}
    except Refusal as refusal:
        log.warning("plan refused: %s", refusal)
        return {"refused": refusal.code}
    except Exception:
        return _failed(log)


def _message(request: Mapping[str, Any], silo: SiloSetup) -> str:
    plan = str(request["plan"])
    if "openings" not in request:
        scores = silo.scores() if callable(silo.scores) else silo.scores
        read, _ = read_plan(plan)
        wanted = silo.groups if read.by in ("group", "class") else None
        groups = wanted() if callable(wanted) else wanted
        return answer(plan, scores, silo.keys, silo.policy, silo.ledger, groups=groups)
    for text in request["openings"]:
        if addressee(text) == silo.keys.name:
            return open_part(plan, text, silo.keys, silo.policy, silo.ledger)
    raise Refusal("not-invited", "none of the openings is for this silo")


@contextmanager
def _warnings_to(log: logging.Logger) -> Iterator[None]:
    """Warnings go where the silo's reasons go: an engine may send on what others print or log."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught or ():
        log.warning("%s", one.message)


def _failed(log: logging.Logger) -> dict[str, str]:
    log.exception("local failure")  # stays in the silo
    return {"refused": "internal"}


def released(plan: str, asked: Round, keys: SiloKeys | None = None) -> FederatedRelease:
    """Aggregate what came back: unusable messages are left out by name; signed if there are keys.

    Raises
    ------
    NotReleasedError
        Naming the silos that are missing, if the others are not enough.
    """
    answers = list(asked.listed or asked.answers.values())
    parts = list(asked.opening.answers.values()) if asked.opening else []
    try:
        return aggregate(plan, answers, parts=parts, keys=keys, drop_refused=True)
    except Refusal as refusal:
        raise NotReleasedError(refusal, missing_silos(plan, answers), asked) from None


def missing_silos(plan: str, answers: Iterable[str]) -> tuple[str, ...]:
    """Names of the silos in the plan of which no answer is usable."""
    read, _ = read_plan(plan)
    heard = {name for text in answers if (name := silo_of(read, text)) is not None}
    return tuple(silo.name for silo in read.silos if silo.name not in heard)


def silo_of(plan: AnyPlan, text: str) -> str | None:
    """Whose answer to the plan this is; None if it cannot be used."""
    with suppress(Refusal):
        return plan.silos[read_answer(plan, text).silo].name
    return None


def listed_names(names: Iterable[str]) -> str:
    """Names one after the other, the first ones of many."""
    named = list(names)
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(named[:_SHOWN]) + more


MOST_CHARACTERS = 200_000_000
"""Of a kept list: the answers of all silos."""


def has_second_round(plan: str, keys: SiloKeys | None) -> bool:
    """Whether a plan has a second question; before the first one is asked, for which silos pay.

    Raises
    ------
    InputError
        If it has, and there are no keys; or if `keys` are not those that signed the plan.
    """
    read, envelope = read_plan(plan)
    opened = read.channel.second
    if opened if keys is None else keys.public().signing != envelope.signer:
        raise InputError("keys must be the coordinator's, who signed the plan: they sign the list of a secure sum")
    return opened


def openings_by_node(
    plan: str, asked: Round, keys: SiloKeys | None, keep: str | Path | None = None
) -> dict[Any, list[str]]:
    """List the answers, and say what each node is sent: its silo's opening, or all that are for no known node.

    Parameters
    ----------
    plan
        The signed plan.
    asked
        The first round; which answers are listed is noted in it.
    keys
        The coordinator's.
    keep
        A file that keeps the list: written before anybody is asked, and taken instead of `asked` if it is there.

    Raises
    ------
    NotReleasedError
        If too few have answered.
    """
    read, _ = read_plan(plan)
    kept = None if keep is None else _kept(read, Path(keep))
    asked.listed = tuple(asked.answers.values()) if kept is None else kept
    assert keys is not None  # has_second_round
    try:
        texts = openings(plan, asked.listed, keys, drop_refused=True)
    except Refusal as refusal:
        raise NotReleasedError(refusal, missing_silos(plan, asked.listed), asked) from None
    if keep is not None and kept is None:
        content = {"plan": read.digest, "answers": asked.listed}
        write_text(Path(keep), json.dumps(content, indent=1) + "\n", overwrite=False)
    return _sent(texts, {node: silo_of(read, text) for node, text in asked.answers.items()}, asked.nodes)


def _sent(texts: dict[str, str], silos: dict[Any, str | None], nodes: Iterable[Any]) -> dict[Any, list[str]]:
    others = [text for name, text in texts.items() if name not in silos.values()]
    sent: dict[Any, list[str]] = {}
    for node in nodes:
        name = silos.get(node)
        sent[node] = others if name is None else [texts[name]] if name in texts else []
    return {node: own for node, own in sent.items() if own}


def _kept(plan: AnyPlan, keep: Path) -> tuple[str, ...] | None:
    if not keep.exists():
        return None
    content = parse(keep.read_text(encoding="utf-8"), "kept list", MOST_CHARACTERS)
    if content.get("plan") != plan.digest or not isinstance(content.get("answers"), list):
        raise InputError(f"keep must name a new file, or that of an earlier try of this plan; found {str(keep)!r}")
    return tuple(str(text) for text in content["answers"])
