"""Over Flower: a thin adapter. `register` in the silo's ClientApp, `calibrate` (or `ask`) in the ServerApp.

Needs `pip install confide[flower]`. Keys, policy and ledger stay in the silo; Flower carries two texts. Of what
goes wrong in a silo nothing travels but a code of `confide.federated.refusals`.
"""

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from confide.errors import InputError
from confide.federated.calibration import FederatedCalibration
from confide.federated.remote import NotReleasedError, Round, SiloSetup, released, reply

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

ACTION = "confide"
SILOS = "CONFIDE_SILOS"
"""The environment variable that names, for simulations, the folder that holds the silos' folders."""

_LOG = logging.getLogger("confide")

Setup: TypeAlias = "Callable[[Context], SiloSetup]"

__all__ = [
    "ACTION", "SILOS", "NotReleasedError", "Round", "Setup", "SiloSetup", "ask", "calibrate", "register", "silo_folder",
    "wait_for_nodes",
]  # fmt: skip


def silo_folder(context: "Context") -> Path:
    """The folder where a silo keeps scores, keys, policy and ledger; never named by a request.

    A SuperNode names its own with `--node-config 'confide="/its/folder"'`. The virtual nodes of a simulation have the
    folders `silo-0`, `silo-1`, ... below the one that the environment variable `CONFIDE_SILOS` names.

    Raises
    ------
    InputError
        If neither names one.
    """
    own, place = (context.node_config.get(name) for name in ("confide", "partition-id"))
    if own is not None:
        return Path(str(own))
    if place is None or SILOS not in os.environ:
        raise InputError(
            "the node configuration names no folder: start the SuperNode with "
            f"--node-config 'confide=\"/its/folder\"', or a simulation with {SILOS} in its environment"
        )
    return Path(os.environ[SILOS]) / f"silo-{place}"


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
        request: Any = message.content.get("request")
        content = reply(request if isinstance(request, Mapping) else {}, lambda: setup(context), _LOG)
        return Message(RecordDict({"reply": ConfigRecord(dict(content))}), reply_to=message)

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
        for message in grid.pull_messages(waiting):
            number = message.metadata.reply_to_message_id  # the source of an error message is not the node
            if number not in waiting:
                continue
            waiting.discard(number)
            _sort_in(found, sent[number], message)
        if waiting:
            time.sleep(poll)
    heard = found.answers.keys() | found.refused.keys() | found.errors.keys()
    found.silent = sorted(set(order) - heard)
    return found


def _sort_in(found: Round, node: int, message: Any) -> None:
    if message.has_error():
        found.errors[node] = int(message.error.code)
        return
    found.take(node, dict(message.content["reply"]) if "reply" in message.content else {})


def calibrate(
    grid: "Grid", plan: str, nodes: Collection[int] | None = None, timeout: float = 60.0, poll: float = 0.2
) -> tuple[FederatedCalibration, Round]:
    """Ask all nodes and aggregate what came back: unusable answers are left out by name.

    Raises
    ------
    NotReleasedError
        If those who answered are not enough: for `secure-sum` everybody has to; it names the silos that are missing.
    """
    asked = ask(grid, plan, list(grid.get_node_ids()) if nodes is None else nodes, timeout, poll)
    return released(plan, asked), asked


def wait_for_nodes(grid: "Grid", count: int, timeout: float = 60.0, poll: float = 0.5) -> list[int]:
    """Wait until `count` nodes are online, or as many as come within `timeout` seconds; their ids."""
    end = time.monotonic() + timeout
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) >= count or time.monotonic() > end:
            return nodes
        time.sleep(poll)
