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
from confide.federated.calibration import FederatedRelease
from confide.federated.keys import SiloKeys
from confide.federated.remote import NotReleasedError as NotReleasedError
from confide.federated.remote import Round as Round
from confide.federated.remote import SiloSetup as SiloSetup
from confide.federated.remote import has_second_round, openings_by_node, released, reply

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

ACTION, OPEN = "confide", "confide_open"
SILOS = "CONFIDE_SILOS"
"""The environment variable that names, for simulations, the folder that holds the silos' folders."""

_LOG = logging.getLogger("confide")

Setup: TypeAlias = "Callable[[Context], SiloSetup]"

__all__ = [
    "ACTION", "OPEN", "SILOS", "Setup", "ask", "calibrate", "register", "silo_folder", "wait_for_nodes",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)


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
    """Let a ClientApp answer `query.confide` messages, and open sums at `query.confide_open`.

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
    client_app.query(OPEN)(handle)


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
    return _ask(grid, ACTION, {node: {"plan": plan} for node in nodes}, timeout, poll)


def calibrate(
    grid: "Grid",
    plan: str,
    nodes: Collection[int] | None = None,
    timeout: float = 60.0,
    poll: float = 0.2,
    *,
    keys: SiloKeys | None = None,
    keep: str | Path | None = None,
) -> tuple[FederatedRelease, Round]:
    """Ask all nodes and aggregate what came back: unusable answers are left out by name.

    A sum with dropouts is opened by a second question, to all nodes once more.

    Parameters
    ----------
    grid, plan, nodes, timeout, poll
        As for `ask`; the time is that of each question, the nodes are by default all that are there.
    keys
        The coordinator's: the release is signed with them. A plan with a second question needs them.
    keep
        A file in which the list of answers is kept before anybody is asked to open it. If too few help, try again with
        this file: openers help to open one list only.

    Raises
    ------
    NotReleasedError
        If those who answered are not enough: for sums without dropouts everybody has to; it names the silos
        that are missing.
    """
    second = has_second_round(plan, keys)
    asked = ask(grid, plan, list(grid.get_node_ids()) if nodes is None else nodes, timeout, poll)
    if second:
        sent = openings_by_node(plan, asked, keys, keep)
        asked.opening = _ask(
            grid, OPEN, {node: {"plan": plan, "openings": texts} for node, texts in sent.items()}, timeout, poll
        )
    return released(plan, asked, keys), asked


def _ask(grid: "Grid", action: str, requests: Mapping[int, Mapping[str, Any]], timeout: float, poll: float) -> Round:
    from flwr.app import ConfigRecord, Message, RecordDict

    def message(node: int) -> Message:
        content = RecordDict({"request": ConfigRecord(dict(requests[node]))})
        return Message(content, dst_node_id=node, message_type=f"query.{action}", ttl=timeout)

    order = list(requests)
    sent = dict(zip(grid.push_messages([message(node) for node in order]), order, strict=True))
    waiting, found, end = set(sent), Round(), time.monotonic() + timeout
    while waiting and time.monotonic() < end:
        for answered in grid.pull_messages(waiting):
            number = answered.metadata.reply_to_message_id  # the source of an error message is not the node
            if number not in waiting:
                continue
            waiting.discard(number)
            _sort_in(found, sent[number], answered)
        if waiting:
            time.sleep(poll)
    return found.close(order)


def _sort_in(found: Round, node: int, message: Any) -> None:
    if message.has_error():
        found.errors[node] = int(message.error.code)
        return
    found.take(node, dict(message.content["reply"]) if "reply" in message.content else {})


def wait_for_nodes(grid: "Grid", count: int, timeout: float = 60.0, poll: float = 0.5) -> list[int]:
    """Wait until `count` nodes are online, or as many as come within `timeout` seconds; their ids."""
    end = time.monotonic() + timeout
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) >= count or time.monotonic() > end:
            return nodes
        time.sleep(poll)
