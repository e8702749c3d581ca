"""Over an engine: the second question of a sum with dropouts, asked of every node, also of the silent ones.

Openers help to open one list of answers. So the list can be kept in a file before anybody is asked, and whoever tries
again asks about the same one.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.federated.envelope import parse
from confide.federated.keys import SiloKeys
from confide.federated.openings import openings
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import DealtVectors
from confide.federated.refusals import Refusal
from confide.federated.remote import NotReleasedError, Round, missing_silos, silo_of
from confide.federated.several_plans import read_plan
from confide.support import write_text

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
    opened = isinstance(read.protocol, DealtVectors)
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
    read, _ = FederatedPlan.read(plan)
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


def _kept(plan: FederatedPlan, keep: Path) -> tuple[str, ...] | None:
    if not keep.exists():
        return None
    content = parse(keep.read_text(encoding="utf-8"), "kept list", MOST_CHARACTERS)
    if content.get("plan") != plan.digest or not isinstance(content.get("answers"), list):
        raise InputError(f"keep must name a new file, or that of an earlier try of this plan; found {str(keep)!r}")
    return tuple(str(text) for text in content["answers"])
