"""The types of keys of a release, each with its printed and stored form."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Division: TypeAlias = Literal["loss", "level", "group", "class", "side"]
"""The type of keys of a release; with "loss" there is one threshold, which bounds the loss."""


class Form(NamedTuple):
    """The printed and stored form of releases with one type of keys."""

    kind: str
    """The kind in their files."""
    to_text: Callable[[Any], str]
    """Convert a key to words."""
    written: Callable[[Any], str | int] = str
    """Convert a key for files."""
    outer: tuple[str, ...] = ()
    """The fields of a file about the whole release."""
    each: str = ""
    """A phrase for what the number of required records belongs to."""


def _form_of_groups(by: str) -> Form:
    return Form(
        "confide/groups",
        to_text=lambda name: f"{by} {name}",
        written=lambda name: name,
        outer=("by", "neighbors"),
        each=f" in each {by}",
    )


FORMS: Mapping[Division | None, Form] = {
    None: Form("confide/calibration", to_text=lambda _: ""),
    "loss": Form(
        "confide/risk",
        to_text=str,
        written=lambda _: "critical",
        outer=("loss", "bound"),
    ),
    "level": Form("confide/levels", to_text=lambda alpha: f"alpha {float(alpha):g}", each=" for all of them"),
    "side": Form(
        "confide/sides", to_text={"low": "lower side", "high": "upper side"}.__getitem__, each=" for both of them"
    ),
    "group": _form_of_groups("group"),
    "class": _form_of_groups("class"),
}

OVERLAPPING = FORMS["group"]._replace(kind="confide/overlapping-groups", outer=("by", "neighbors", "columns"))
"""The form of releases with groups of several columns."""
