"""A round over any transport: `run` at the coordinator, `serve` in a silo, and a courier (`Ask`) between them.

If something fails in a silo, only a code of `confide.federated.refusals` is sent to the coordinator.
"""

import logging
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from confide.federated.answers import Scores, answer, read_answer
from confide.federated.keys import SiloKeys
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.policy import Policy
from confide.federated.refusals import CODES, Refusal, listed
from confide.federated.release import FederatedRelease, aggregate, check_keys
from confide.federated.silo_ledger import SiloLedger

LOG = logging.getLogger("confide")

# Nodes that a message names
_SHOWN = 10

__all__ = [
    "Ask", "Failure", "NotReleasedError", "Reply", "Request", "Round", "SiloSetup", "run", "serve",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


# Messages and couriers

# A request has the signed plan as the text `plan`
Request: TypeAlias = Mapping[str, Any]
# A reply has a signed answer as the text `answer`, or a code as `refused`
Reply: TypeAlias = Mapping[str, Any]


class Failure(NamedTuple):
    """A node without a reply: the engine's error code, without its text."""

    code: int | str


# A courier: sends every node its request and returns the replies that come in time; a node without a reply is silent.
# It names nodes by texts or numbers. Requests and replies are JSON values, which it may read: plans and answers are
# signed, and their contents are private or masked.
Ask: TypeAlias = Callable[[Mapping[Any, Request]], Iterable[tuple[Any, Reply | Failure]]]


# In a silo


@dataclass(frozen=True)
class SiloSetup:
    """The scores, keys, policy and ledger of a silo, read from its own disk and never from a request.

    Parameters
    ----------
    scores
        The silo's nonconformity scores, or a histogram over the plan's candidates; or a function that reads them, which
        is called only if a plan has to be answered.
    keys, policy, ledger
        As in `confide.federated.answer`.
    groups
        The group or class of each score, for plans with a threshold for each; or a function that reads them.
    """

    scores: Scores | Callable[[], Scores]
    keys: SiloKeys = field(repr=False)
    policy: Policy
    ledger: SiloLedger
    groups: ArrayLike | Callable[[], ArrayLike | None] | None = None

    @classmethod
    def load(cls, folder: str | Path) -> "SiloSetup":
        """Load `scores.npy`, `keys.json`, `policy.json` and the ledger `budget.db` from a folder of the silo.

        The optional `groups.npy` has the group or class of each score. The optional `scores.npz` replaces `scores.npy`,
        and has the scores of both sides of an interval, by their names.
        """
        folder = Path(folder)

        def scores() -> Scores:
            sides = folder / "scores.npz"
            if sides.exists():
                with np.load(sides, allow_pickle=False) as by_name:
                    return dict(by_name)
            array: Scores = np.load(folder / "scores.npy", allow_pickle=False)
            return array

        def groups() -> ArrayLike | None:
            path = folder / "groups.npy"
            return np.load(path, allow_pickle=False) if path.exists() else None

        return cls(
            scores=scores,
            keys=SiloKeys.load(folder / "keys.json"),
            policy=Policy.load(folder / "policy.json"),
            ledger=SiloLedger(folder / "budget.db"),
            groups=groups,
        )


def serve(request: Request, setup: Callable[[], SiloSetup], log: logging.Logger = LOG) -> dict[str, str]:
    """Make a silo's reply to a request: its message, or only a code.

    Parameters
    ----------
    request
        The request from the courier.
    setup
        Makes the silo's setup from its own files.
    log
        Logger for reasons, warnings and tracebacks. The transport must not send its output to others.
    """
    # A `Refusal` here concerns the silo's own files and not the request
    try:
        silo = setup()
    except Exception:
        return _failed(log)
    try:
        with _warnings_to(log):
            return {"answer": _answer(request, silo)}
    except Refusal as refusal:
        log.warning("plan rejected: %s", refusal)
        return {"refused": refusal.code}
    except Exception:
        return _failed(log)


def _answer(request: Request, silo: SiloSetup) -> str:
    plan = str(request["plan"])
    scores = silo.scores() if callable(silo.scores) else silo.scores
    groups = None
    if read_plan(plan).by in ("group", "class"):
        groups = silo.groups() if callable(silo.groups) else silo.groups
    return answer(plan, scores, silo.keys, silo.policy, silo.ledger, groups=groups)


@contextmanager
def _warnings_to(log: logging.Logger) -> Iterator[None]:
    """Write warnings to the silo's log, because an engine may send printed or logged text to others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:  # also before a refusal
            for warning in caught or ():
                log.warning("%s", warning.message)


def _failed(log: logging.Logger) -> dict[str, str]:
    """Log the error that is being handled, whose traceback stays in the silo."""
    log.exception("local failure")
    return {"refused": "internal"}


# At the coordinator


@dataclass
class Round:
    """The replies to one request, by the courier's names of the nodes.

    Parameters
    ----------
    answers
        Message by node.
    refused
        Code by node.
    errors
        The engine's error code by node; its text is dropped.
    silent
        Nodes that did not reply in time.

    Examples
    --------
    >>> print(Round(answers={7: "..."}, refused={8: "budget-spent"}, silent=[9]))
    1 answered; refused: 8 (budget-spent); silent: 9
    """

    answers: dict[Any, str] = field(default_factory=dict)
    refused: dict[Any, str] = field(default_factory=dict)
    errors: dict[Any, int | str] = field(default_factory=dict)
    silent: list[Any] = field(default_factory=list)

    @property
    def nodes(self) -> list[Any]:
        """All nodes that were sent the request."""
        return [*self.answers, *self.refused, *self.errors, *self.silent]

    def record(self, node: Any, content: Reply | Failure) -> None:
        """Record a node's reply: its message, a code of the public list, or a failure of the engine."""
        if isinstance(content, Failure):
            self.errors[node] = content.code
        elif isinstance(message := content.get("answer"), str):
            self.answers[node] = message
        else:
            code = str(content.get("refused"))
            self.refused[node] = code if code in CODES else "malformed"

    def close(self, asked: Iterable[Any]) -> "Round":
        """Record nodes without a reply as silent, and sort the answers, so that the order of replies is not kept."""
        self.silent = sorted(set(asked) - set(self.nodes))
        self.answers = dict(sorted(self.answers.items()))
        return self

    def __str__(self) -> str:
        texts = [f"{len(self.answers)} answered"]
        for what, codes in (("refused", self.refused), ("errors", self.errors)):
            if codes:
                nodes = [f"{node} ({code})" for node, code in sorted(codes.items())]
                texts.append(f"{what}: {listed(nodes, _SHOWN)}")
        if self.silent:
            texts.append(f"silent: {listed([str(node) for node in self.silent], _SHOWN)}")
        return "; ".join(texts)


class NotReleasedError(Refusal):
    """The error for too few usable messages for a release.

    Parameters
    ----------
    why
        The reason.
    missing
        Names of the silos in the plan without a usable answer.
    asked
        The replies.
    """

    def __init__(self, why: Refusal, missing: tuple[str, ...], asked: Round) -> None:
        self.missing = missing
        self.asked = asked
        names = listed([repr(name) for name in missing], _SHOWN)
        without = f"no usable answer came from {names} " if missing else ""
        super().__init__(why.code, f"nothing is released; {without}({asked}); {why.requirement}")


def run(ask: Ask, nodes: Collection[Any], plan: str, *, keys: SiloKeys | None = None) -> tuple[FederatedRelease, Round]:
    """Send a plan to all nodes and aggregate their answers. Unusable answers are left out and recorded.

    Parameters
    ----------
    ask
        The courier.
    nodes
        The courier's names of the nodes.
    plan
        The signed plan.
    keys
        The coordinator's keys, which sign the release.

    Raises
    ------
    NotReleasedError
        If too few silos answered; sums need all silos. The error names the missing silos.
    InputError
        If `keys` are not those that signed the plan; then no request is sent.

    Examples
    --------
    >>> import tempfile
    >>> from functools import partial
    >>> from confide import federated
    >>> folder, rng = tempfile.TemporaryDirectory(), np.random.default_rng(0)
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> policy = federated.Policy(coordinator.public().signing, budget=4.0, per_plan=2.0)
    >>> silos, functions = [], {}
    >>> for name in ("north", "south", "east"):
    ...     keys, ledger = federated.SiloKeys.generate(name), federated.SiloLedger(f"{folder.name}/{name}.db")
    ...     silo = SiloSetup(rng.random(300), keys, policy, ledger)
    ...     functions[name] = partial(serve, setup=lambda silo=silo: silo)
    ...     silos.append(keys.public(size=300))
    >>> plan = federated.plan(silos, alpha=0.1, epsilon=2.0, method="private-qq", score="lac").sign(coordinator)
    >>> def ask(requests):  # here a node is a function
    ...     return [(node, functions[node](request)) for node, request in requests.items()]
    >>> released, asked = run(ask, functions, plan, keys=coordinator)
    >>> print(released.coverage, asked)
    0.9 3 answered
    >>> folder.cleanup()
    """
    parsed = read_plan(plan)
    check_keys(parsed, keys)
    replies = one_round(ask, {node: {"plan": plan} for node in nodes})
    answers = list(replies.answers.values())
    try:
        return aggregate(plan, answers, keys=keys, drop_refused=True), replies
    except Refusal as refusal:
        # Name the silos without a usable answer
        usable = {_silo_of(parsed, text) for text in answers}
        missing = tuple(silo.name for silo in parsed.silos if silo.name not in usable)
        raise NotReleasedError(refusal, missing, replies) from None


def one_round(ask: Ask, requests: Mapping[Any, Request]) -> Round:
    """The replies to one request: the first reply of each node."""
    replies = Round()
    waiting = set(requests)
    for node, reply in ask(requests):
        if node in waiting:
            waiting.discard(node)
            replies.record(node, reply)
    return replies.close(requests)


def _silo_of(plan: FederatedPlan, text: str) -> str | None:
    """The name of the silo of an answer; None if it cannot be used."""
    with suppress(Refusal):
        return plan.silos[read_answer(plan, text).silo].name
    return None
