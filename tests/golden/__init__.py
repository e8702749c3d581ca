"""Texts that users read, each compared as a whole with a file: help, `show`, forms of values, a page.

No other test pins words. `python -m tests.golden` rewrites the files and lists them; `git diff` shows the words.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from html import unescape
from pathlib import Path
from unittest.mock import patch

from tests.kept import FOLDER as KEPT
from tests.kept import path_of

FOLDER = Path(__file__).parent / "texts"

VALUES = {
    **{name: name for name in (
        "calibration", "calibration-delta", "published-counts", "levels", "groups", "sides", "risk", "federated",
        "federated-plan", "silo", "policy",
    )},
    "calibration-weights": "class-shares",
    "evaluation": "sets",
    "private-evaluation": "private-sets",
    "watch": "watch-alarm",
}  # fmt: skip
"""A kept file of most kinds of values, by the name of its text; others have the words of two of these."""

HELPS = {"help": (), "help-calibrate": ("calibrate",), "help-federated": ("federated",)}
"""A list of commands, a command with all kinds of options, and a group; options of all are in tests/surface."""


def texts() -> dict[str, Callable[[], str]]:
    """Every text by the name of its file."""
    made: dict[str, Callable[[], str]] = {name: partial(said, *command, "--help") for name, command in HELPS.items()}
    made |= {f"value-{name}": partial(value, path) for name, path in VALUES.items()}
    return made | {"plan": plan, "ledger": ledger, "page": page, "card": card}


def said(*arguments: object) -> str:
    """The output of a command, followed by its warnings."""
    from confide.cli import main

    out, err = io.StringIO(), io.StringIO()
    with patch.dict("os.environ", {"COLUMNS": "80"}), redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    assert code == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def value(name: str) -> str:
    """The output of `confide show` for a kept file."""
    return said("show", path_of(name))


def plan() -> str:
    """A plan from public numbers."""
    import confide

    made = confide.plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one", candidates=1000)
    return f"{made!r}\n{made}\n"


def ledger() -> str:
    """The accounts of a kept ledger."""
    from confide.ledger import Ledger

    accounts = Ledger(KEPT / "kept.ledger", create=False).accounts().values()
    return "\n".join(f"{one!r}\n{one}\n{one.spent()}\n" for one in accounts)


def page() -> str:
    """The page of a kept release, with a kept evaluation of it."""
    import confide

    return "\n".join(words(confide.report(confide.Release.load(path_of("calibration"))).html)) + "\n"


def card() -> str:
    """The model card of a kept release for groups."""
    import confide
    from confide.core import load_release

    return confide.card(load_release(path_of("groups"))).text


def words(html: str) -> Iterator[str]:
    """The words of a page, a line for each block of it."""
    body = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)
    body = re.sub(r"\s+", " ", body)
    body = re.sub(r"</?(p|h\d|li|tr|dt|dd|div|caption|section|figcaption|summary|pre|text|title)\b[^>]*>", "\n", body)
    body = re.sub(r"</t[hd]>", "  ", body)
    lines = (unescape(re.sub(r"<[^>]+>", "", line)).strip() for line in body.splitlines())
    return (line for line in lines if line)
