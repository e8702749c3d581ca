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
from typing import Any
from unittest.mock import patch

TESTS = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "texts"

VALUES = {
    "calibration": "releases/samples/0.2/calibration.json",
    "calibration-delta": "releases/samples/0.2/calibration-delta.json",
    "calibration-infinite": "releases/samples/0.2/calibration-infinite.json",
    "calibration-weights": "releases/samples/0.2/class-shares.json",
    "published-counts": "releases/samples/other/published-counts.json",
    "counts-calibration": "releases/samples/other/counts-calibration.json",
    "published-method": "releases/samples/0.2/pps.json",
    "levels": "releases/samples/0.2/levels.json",
    "groups": "releases/samples/0.2/groups.json",
    "sides": "releases/samples/0.2/sides.json",
    "risk": "releases/samples/0.2/risk.json",
    "federated": "federated/samples/0.2/opened/released.json",
    "federated-levels": "federated/samples/0.2/levels/released.json",
    "evaluation": "evaluation/samples/0.2/sets-with-examples.json",
    "evaluation-levels": "evaluation/samples/0.2/sets-levels.json",
    "private-evaluation": "evaluation/samples/0.2/private-sets.json",
    "watch": "watching/samples/0.2/alarm.json",
    "watch-sizes": "watching/samples/0.2/sizes.json",
    "counting-plan": "warehouse/samples/other/classes-by-ward.json",
    "federated-plan": "federated/samples/0.2/opened/plan.json",
    "federated-plans": "federated/samples/0.2/levels/plan.json",
    "silo": "federated/samples/0.2/silo.json",
    "policy": "federated/samples/0.2/policy.json",
}
"""A kept file of every kind of value."""


def texts() -> dict[str, Callable[[], str]]:
    """Every text by the name of its file."""
    from confide.cli.app import app

    made: dict[str, Callable[[], str]] = {"help": help_of}
    made |= {f"help-{name}": partial(help_of, name) for name in app.commands}
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


def help_of(*command: str) -> str:
    """The whole help of a command, and of its subcommands."""
    from confide.cli.app import app

    found: Any = app
    for name in command:
        found = found.commands[name]
    whole = any("--help-all" in one.opts for one in found.params)
    text = said(*command, "--help-all" if whole else "--help")
    if not command:
        return text
    below = [help_of(*command, name) for name in getattr(found, "commands", {})]
    return "\n".join([text, *below])


def value(path: str) -> str:
    """The output of `confide show` for a kept file."""
    return said("show", TESTS / path)


def plan() -> str:
    """A plan from public numbers."""
    import confide

    made = confide.plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one", candidates=1000)
    return f"{made!r}\n{made}\n"


def ledger() -> str:
    """The accounts of a kept ledger."""
    from confide.ledger import Ledger

    accounts = Ledger(TESTS / "ledger/samples/other/schema-2.ledger", create=False).accounts().values()
    return "\n".join(f"{one!r}\n{one}\n{one.spent()}\n" for one in accounts)


def page() -> str:
    """The page of a kept release, with a kept evaluation of it."""
    import confide

    return "\n".join(words(confide.report(confide.Calibration.load(TESTS / VALUES["calibration"])).html)) + "\n"


def card() -> str:
    """The model card of a kept release for groups."""
    import confide
    from confide.releases import load_release

    return confide.card(load_release(TESTS / VALUES["groups"])).text


def words(html: str) -> Iterator[str]:
    """The words of a page, a line for each block of it."""
    body = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)
    body = re.sub(r"\s+", " ", body)
    body = re.sub(r"</?(p|h\d|li|tr|dt|dd|div|caption|section|figcaption|summary|pre|text|title)\b[^>]*>", "\n", body)
    body = re.sub(r"</t[hd]>", "  ", body)
    lines = (unescape(re.sub(r"<[^>]+>", "", line)).strip() for line in body.splitlines())
    return (line for line in lines if line)
