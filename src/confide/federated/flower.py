"""Federated calibration over Flower: `register` in the silo's ClientApp, `calibrate` (or `ask`) in the ServerApp.

Needs `pip install confide[flower]`. Keys, policy and ledger stay in the silo. Flower transports the plan and the
answer. If something fails in a silo, only a code of `confide.federated.refusals` is sent.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from confide.errors import InputError
from confide.federated.keys import SiloKeys
from confide.federated.release import FederatedRelease
from confide.federated.remote import Ask, Failure, Reply, Request, one_round, run, serve
from confide.federated.remote import NotReleasedError as NotReleasedError
from confide.federated.remote import Round as Round
from confide.federated.remote import SiloSetup as SiloSetup

if TYPE_CHECKING:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

ACTION = "confide"

# The environment variable with the parent folder of the silos' folders, for simulations
SILOS = "CONFIDE_SILOS"

Setup: TypeAlias = "Callable[[Context], SiloSetup]"

__all__ = [
    "ACTION", "SILOS", "Setup", "ask", "calibrate", "register", "silo_folder", "wait_for_nodes",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


def silo_folder(context: "Context") -> Path:
    """The folder of a silo's scores, keys, policy and ledger, which no request can choose.

    A SuperNode sets it with `--node-config 'confide="/its/folder"'`. The virtual nodes of a simulation use the folders
    `silo-0`, `silo-1`, ... inside the folder that the environment variable `CONFIDE_SILOS` names.

    Raises
    ------
    InputError
        If neither is set.
    """
    folder, number = (context.node_config.get(name) for name in ("confide", "partition-id"))
    if folder is not None:
        return Path(str(folder))
    if number is None or SILOS not in os.environ:
        raise InputError(
            "folder",
            "the node configuration names no folder: start the SuperNode with --node-config "
            f"'confide=\"/its/folder\"', or a simulation with {SILOS} in its environment",
        )
    return Path(os.environ[SILOS]) / f"silo-{number}"


def register(client_app: "ClientApp", setup: Setup) -> None:
    """Register handlers of a ClientApp that answer `query.confide` messages.

    Parameters
    ----------
    client_app
        The app; its other handlers are not changed.
    setup
        Called in the silo with Flower's context for every request. It reads scores, keys, policy and ledger from
        the folder that the silo's `--node-config` names.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    def handle(message: Message, context: "Context") -> Message:
        request: Any = message.content.get("request")
        content = serve(request if isinstance(request, Mapping) else {}, lambda: setup(context))
        return Message(RecordDict({"reply": ConfigRecord(dict(content))}), reply_to=message)

    client_app.query(ACTION)(handle)


def _courier(grid: "Grid", timeout: float, poll: float) -> Ask:
    """Flower's grid as a courier. Messages are never resent."""
    from flwr.app import ConfigRecord, Message, RecordDict

    def message(node: int, request: Request) -> Message:
        content = RecordDict({"request": ConfigRecord(dict(request))})
        return Message(content, dst_node_id=node, message_type=f"query.{ACTION}", ttl=timeout)

    def ask_nodes(requests: Mapping[int, Request]) -> Iterator[tuple[int, Reply | Failure]]:
        pushed = grid.push_messages([message(node, request) for node, request in requests.items()])
        # The node of each message that has no reply yet
        waiting = dict(zip(pushed, requests, strict=True))
        end = time.monotonic() + timeout
        is_last = False
        while waiting and not is_last:
            is_last = time.monotonic() >= end
            for answered in grid.pull_messages(set(waiting)):
                # The source of an error message is not the node
                number = answered.metadata.reply_to_message_id
                if number in waiting:
                    yield waiting.pop(number), _content(answered)
            if waiting:
                time.sleep(max(min(poll, end - time.monotonic()), 0))

    return ask_nodes


def _content(message: "Message") -> Reply | Failure:
    if message.has_error():
        return Failure(int(message.error.code))
    return dict(message.content["reply"]) if "reply" in message.content else {}


def ask(grid: "Grid", plan: str, nodes: Collection[int], timeout: float = 60.0, poll: float = 0.2) -> Round:
    """Send a signed plan to nodes once and wait for their answers.

    Parameters
    ----------
    plan
        The signed plan.
    nodes
        Node ids.
    grid
        Flower's grid, whose ids name the nodes.
    timeout
        Seconds to wait for the replies.
    poll
        Seconds between checks for replies.
    """
    return one_round(_courier(grid, timeout, poll), {node: {"plan": plan} for node in nodes})


def calibrate(
    grid: "Grid",
    plan: str,
    nodes: Collection[int] | None = None,
    timeout: float = 60.0,
    poll: float = 0.2,
    *,
    keys: SiloKeys | None = None,
) -> tuple[FederatedRelease, Round]:
    """Send a plan to all nodes and aggregate their answers: `confide.federated.remote.run` over Flower's grid.

    Parameters
    ----------
    grid, timeout, poll
        As in `ask`.
    plan, keys
        As in `run`.
    nodes
        Node ids; by default all nodes that are online.

    Raises
    ------
    NotReleasedError, InputError
        As in `run`.
    """
    nodes = list(grid.get_node_ids()) if nodes is None else nodes
    return run(_courier(grid, timeout, poll), nodes, plan, keys=keys)


def wait_for_nodes(grid: "Grid", count: int, timeout: float = 60.0, poll: float = 0.5) -> list[int]:
    """Wait until `count` nodes are online, at most `timeout` seconds, and return the ids of the nodes online."""
    end = time.monotonic() + timeout
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) >= count or time.monotonic() > end:
            return nodes
        time.sleep(poll)
