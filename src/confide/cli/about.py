"""Public words that are kept in a release: the option, and what it says."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import click

from confide.cli import options as o
from confide.releases import ABOUT, check_about

About: TypeAlias = Annotated[
    list[str] | None,
    o.output("KEY=TEXT", f"Public words, repeatable; KEY: {', '.join(ABOUT)}."),
]


def stated_words(stated: list[str] | None) -> Mapping[str, str] | None:
    """What --about says, however often it is given; None if it is not.

    Examples
    --------
    >>> dict(stated_words(["date=2026-11-21", "model = resnet"]))
    {'model': 'resnet', 'date': '2026-11-21'}
    """
    pairs = [text.partition("=")[::2] for text in stated or []]
    if wrong := [text for text in stated or [] if "=" not in text]:
        raise click.UsageError(f"--about must be KEY=TEXT, as model=NAME; found {wrong[0]!r}")
    if len(dict(pairs)) != len(pairs):
        raise click.UsageError("--about must name every key once")
    return check_about({key.strip(): text.strip() for key, text in pairs}) if pairs else None
