"""A watch as JSON: its settings and every look's noisy counts. What follows from them is computed, not stored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from confide.errors import FormatError
from confide.mechanisms import NEIGHBORS
from confide.releases import documents
from confide.support import VERSIONS, Fields, shapes
from confide.watching.course import MOST_COUNT, Look, Watch
from confide.watching.settings import Reference, Settings

KIND = "confide.watch"
_MOST_TIME = 40


def _promised(rows: tuple[dict[str, Any], ...]) -> dict[str, float]:
    promised = {row["name"]: row["coverage"] for row in rows}
    if len(promised) != len(rows):
        raise FormatError("the watch names a part twice")
    return promised


def _write_promised(promised: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "coverage": coverage} for name, coverage in promised.items()]


def _time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None or len(text) > _MOST_TIME:
        raise ValueError
    return text


def _look(name: str, made: str, counts: tuple[int, ...], versions: Mapping[str, str] | None) -> Look:
    return Look(name, made, counts, versions or {})


_SETTINGS: shapes.Shape = {
    "release": shapes.TEXT,
    "epsilon": shapes.number(),
    "neighbors": shapes.choice(*NEIGHBORS),
    "records_per_person": shapes.INTEGER,
    "batch": shapes.INTEGER,
    "planned_looks": replace(shapes.INTEGER, attribute="looks"),
    "error": shapes.number(),
    "tolerance": shapes.number(),
    "promised": shapes.Field(
        "a list of parts",
        (list,),
        _promised,
        _write_promised,
        entry=shapes.Field("a part", (dict,), shape={"name": shapes.TEXT, "coverage": shapes.number()}),
    ),
    "bins": shapes.listed(shapes.INTEGER),
    "reference": shapes.nullable(
        shapes.record(
            Reference,
            {
                "counts": shapes.listed(shapes.integer(MOST_COUNT, -MOST_COUNT)),
                "epsilon": shapes.number(),
                "noises": shapes.INTEGER,
            },
        )
    ),
}
_LOOKS = shapes.listed(
    shapes.record(
        _look,
        {
            "name": shapes.TEXT,
            "made": shapes.Field("a time with its zone", (str,), _time),
            "counts": shapes.listed(shapes.INTEGER),
            "versions": shapes.optional(VERSIONS),
        },
    )
)


def _fields(watch: Watch) -> dict[str, Any]:
    return {**shapes.write_shape(watch.settings, _SETTINGS), "looks": _LOOKS.json(watch.looks)}


def _read(fields: Fields) -> Watch:
    values = shapes.read_shape(fields, {**_SETTINGS, "looks": _LOOKS})
    looks = values.pop("looks")
    return Watch(Settings(looks=values.pop("planned_looks"), **values), looks)


documents.register(
    Watch,
    documents.Kind(KIND, "watch", _fields, _read, integer_bits=63, since_2=frozenset({"looks.versions"})),
)
