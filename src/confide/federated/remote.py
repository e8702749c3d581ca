"""What adapters to federated engines share: what a silo brings, how it replies, and what came back.

Of what goes wrong in a silo nothing travels but a code of `confide.federated.refusals`.
"""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.counting import ScoreHistogram
from confide.federated.aggregate import aggregate
from confide.federated.answer import answer
from confide.federated.answers import read_answer
from confide.federated.calibration import FederatedCalibration
from confide.federated.keys import SiloKeys
from confide.federated.plan import FederatedPlan
from confide.federated.policy import Policy
from confide.federated.refusals import CODES, Refusal
from confide.federated.silo_ledger import SiloLedger

_SHOWN = 10


@dataclass(frozen=True)
class SiloSetup:
    """All that a silo brings, read from its own disk and never from a request.

    Parameters
    ----------
    scores
        Its conformity scores, or a histogram over the plan's candidates.
    keys, policy, ledger
        As for `confide.federated.answer`.
    """

    scores: ArrayLike | ScoreHistogram
    keys: SiloKeys = field(repr=False)
    policy: Policy
    ledger: SiloLedger

    @classmethod
    def load(cls, folder: str | Path) -> "SiloSetup":
        """From a folder of the silo: `scores.npy`, `keys.json`, `policy.json`, and its ledger `budget.db`."""
        folder = Path(folder)
        return cls(
            scores=np.load(folder / "scores.npy", allow_pickle=False),
            keys=SiloKeys.load(folder / "keys.json"),
            policy=Policy.load(folder / "policy.json"),
            ledger=SiloLedger(folder / "budget.db"),
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

    Examples
    --------
    >>> print(Round(answers={7: "..."}, refused={8: "budget-spent"}, silent=[9]))
    1 answered; refused: 8 (budget-spent); silent: 9
    """

    answers: dict[Any, str] = field(default_factory=dict)
    refused: dict[Any, str] = field(default_factory=dict)
    errors: dict[Any, int | str] = field(default_factory=dict)
    silent: list[Any] = field(default_factory=list)

    def take(self, node: Any, content: Mapping[str, Any]) -> None:
        """Sort a node's reply in: its message, or a code of the public list."""
        if isinstance(message := content.get("answer"), str):
            self.answers[node] = message
        else:
            code = str(content.get("refused"))
            self.refused[node] = code if code in CODES else "malformed"

    def __str__(self) -> str:
        said = [f"{len(self.answers)} answered"]
        for what, codes in (("refused", self.refused), ("errors", self.errors)):
            if codes:
                said.append(f"{what}: {_listed(f'{node} ({code})' for node, code in sorted(codes.items()))}")
        if self.silent:
            said.append(f"silent: {_listed(map(str, self.silent))}")
        return "; ".join(said)


class NotReleasedError(Refusal):
    """The answers that came are not enough for a release.

    Parameters
    ----------
    code
        One of `CODES`.
    missing
        Names of the silos in the plan of which no usable answer came.
    asked
        What came back.
    """

    def __init__(self, code: str, missing: tuple[str, ...], asked: Round) -> None:
        self.missing, self.asked = missing, asked
        without = _listed(repr(name) for name in missing) if missing else "nobody"
        super().__init__(code, f"nothing is released; no usable answer came from {without} ({asked})")


def reply(request: Mapping[str, Any], setup: Callable[[], SiloSetup], log: logging.Logger) -> dict[str, str]:
    """A silo's reply to a request with a plan: its answer, or a code and nothing else; why stays in `log`."""
    try:
        silo = setup()
    except Exception:  # also a refusal: of the silo's own files, which are not the coordinator's matter
        return _failed(log)
    try:
        with _warnings_to(log):
            return {"answer": answer(str(request["plan"]), silo.scores, silo.keys, silo.policy, silo.ledger)}
    except Refusal as refusal:
        log.warning("plan refused: %s", refusal)
        return {"refused": refusal.code}
    except Exception:
        return _failed(log)


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


def released(plan: str, asked: Round) -> FederatedCalibration:
    """Aggregate what came back: unusable answers are left out by name.

    Raises
    ------
    NotReleasedError
        Naming the silos that are missing, if the others are not enough.
    """
    try:
        return aggregate(plan, list(asked.answers.values()), drop_refused=True)
    except Refusal as refusal:
        raise NotReleasedError(refusal.code, _missing(plan, asked), asked) from None


def _missing(plan: str, asked: Round) -> tuple[str, ...]:
    read, _ = FederatedPlan.read(plan)
    heard = set()
    for text in asked.answers.values():
        try:
            heard.add(read_answer(read, text).silo)
        except Refusal:
            continue
    return tuple(silo.name for i, silo in enumerate(read.silos) if i not in heard)


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
