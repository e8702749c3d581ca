"""Over Flower: a thin adapter. `register` in the silo's ClientApp, `calibrate` (or `ask`) in the ServerApp.

Needs `pip install confide[flower]`. Keys, policy and ledger stay in the silo; Flower carries two texts. Of what
goes wrong in a silo nothing travels but a code of `confide.federated.refusals`.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike

from confide.counting import ScoreHistogram
from confide.federated.aggregate import aggregate
from confide.federated.answer import answer
from confide.federated.calibration import FederatedCalibration
from confide.federated.keys import SiloKeys
from confide.federated.policy import Policy
from confide.federated.refusals import CODES, Refusal
from confide.federated.silo_ledger import SiloLedger

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

ACTION = "confide"
_LOG = logging.getLogger("confide")


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


Setup: TypeAlias = "Callable[[Context], SiloSetup]"


@dataclass
class Round:
    """What came back from one question.

    Parameters
    ----------
    answers
        Node id -> message.
    refused
        Node id -> code.
    errors
        Node id -> Flower's error code; its text is dropped.
    silent
        Nodes that did not answer in time.
    """

    answers: dict[int, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    errors: dict[int, int] = field(default_factory=dict)
    silent: list[int] = field(default_factory=list)


def register(client_app: "ClientApp", setup: Setup) -> None:
    """Let a ClientApp answer `query.confide` messages.

    Parameters
    ----------
    client_app
        The app; its other handlers are untouched.
    setup
        Called in the silo with Flower's context for every question; it reads scores, keys, policy and ledger from
        places that the silo's `--node-config` names.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    def handle(message: Message, context: "Context") -> Message:
        try:
            request = message.content["request"]
            assert isinstance(request, Mapping)
            silo = setup(context)
            reply = {"answer": answer(str(request["plan"]), silo.scores, silo.keys, silo.policy, silo.ledger)}
        except Refusal as refusal:
            _LOG.warning("plan refused: %s", refusal)
            reply = {"refused": refusal.code}
        except Exception:
            _LOG.exception("local failure")  # stays in the silo
            reply = {"refused": "internal"}
        return Message(RecordDict({"reply": ConfigRecord(dict(reply))}), reply_to=message)

    client_app.query(ACTION)(handle)


def ask(grid: "Grid", plan: str, nodes: Collection[int], timeout: float = 60.0, poll: float = 0.2) -> Round:
    """Send a signed plan to nodes and wait for their answers, once. Nothing is ever resent.

    Parameters
    ----------
    grid
        Flower's grid.
    plan
        The signed plan.
    nodes
        Node ids.
    timeout
        Seconds to wait in all.
    poll
        Seconds between looks.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    order = list(nodes)

    def request(node: int) -> Message:
        content = RecordDict({"request": ConfigRecord({"plan": plan})})
        return Message(content, dst_node_id=node, message_type=f"query.{ACTION}", ttl=timeout)

    sent = dict(zip(grid.push_messages([request(node) for node in order]), order, strict=True))
    waiting, found, end = set(sent), Round(), time.monotonic() + timeout
    while waiting and time.monotonic() < end:
        for reply in grid.pull_messages(waiting):
            number = reply.metadata.reply_to_message_id  # the source of an error message is not the node
            if number not in waiting:
                continue
            waiting.discard(number)
            _sort_in(found, sent[number], reply)
        if waiting:
            time.sleep(poll)
    heard = found.answers.keys() | found.refused.keys() | found.errors.keys()
    found.silent = sorted(set(order) - heard)
    return found


def _sort_in(found: Round, node: int, reply: Any) -> None:
    if reply.has_error():
        found.errors[node] = int(reply.error.code)
        return
    content = dict(reply.content["reply"]) if "reply" in reply.content else {}
    if isinstance(content.get("answer"), str):
        found.answers[node] = content["answer"]
    else:
        code = str(content.get("refused"))
        found.refused[node] = code if code in CODES else "malformed"


def calibrate(
    grid: "Grid", plan: str, nodes: Collection[int] | None = None, timeout: float = 60.0, poll: float = 0.2
) -> tuple[FederatedCalibration, Round]:
    """Ask all nodes and aggregate what came back: unusable answers are left out by name.

    Raises
    ------
    Refusal
        `missing` if nobody answered (or, for `secure-sum`, not everybody).
    """
    asked = ask(grid, plan, list(grid.get_node_ids()) if nodes is None else nodes, timeout, poll)
    return aggregate(plan, list(asked.answers.values()), drop_refused=True), asked


def wait_for_nodes(grid: "Grid", count: int, timeout: float = 60.0, poll: float = 0.5) -> list[int]:
    """Wait until `count` nodes are online, or as many as come within `timeout` seconds; their ids."""
    end = time.monotonic() + timeout
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) >= count or time.monotonic() > end:
            return nodes
        time.sleep(poll)
