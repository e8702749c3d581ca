"""A watch as JSON: its settings and every look's noisy counts. What follows from them is computed, not stored."""

import math
from dataclasses import asdict
from datetime import datetime
from typing import Any

from confide.errors import FormatError
from confide.mechanisms import NEIGHBORS
from confide.releases import documents
from confide.support import Fields, one_of, optional_versions
from confide.watching.course import MOST_COUNT, Look, Watch
from confide.watching.reference import Reference
from confide.watching.settings import Settings

KIND = "confide.watch"


def _fields(watch: Watch) -> dict[str, Any]:
    made, known = watch.settings, watch.settings.reference
    return {
        "release": made.release,
        "epsilon": made.epsilon,
        "neighbors": made.neighbors,
        "records_per_person": made.records_per_person,
        "batch": made.batch,
        "planned_looks": made.looks,
        "error": made.error,
        "tolerance": made.tolerance,
        "promised": [{"name": name, "coverage": level} for name, level in made.promised.items()],
        "bins": list(made.bins),
        "reference": None if known is None else {**asdict(known), "counts": list(known.counts)},
        "looks": [_look_fields(one) for one in watch.looks],
    }


def _look_fields(look: Look) -> dict[str, Any]:
    stated = {"versions": dict(look.versions)} if look.versions else {}
    return {"name": look.name, "made": look.made, "counts": list(look.counts), **stated}


def _read(fields: Fields) -> Watch:
    promised, rows = {}, _rows(fields, "promised")
    for row in rows:
        promised[row.take("name", str)] = float(row.take("coverage", (float, int)))
        row.finish()
    if len(promised) != len(rows):
        raise FormatError("the watch names a part twice")
    settings = Settings(
        release=fields.take("release", str),
        epsilon=_number(fields, "epsilon"),
        neighbors=one_of("neighbors", fields.take("neighbors", str), NEIGHBORS),
        records_per_person=fields.take("records_per_person", int),
        batch=fields.take("batch", int),
        looks=fields.take("planned_looks", int),
        error=_number(fields, "error"),
        tolerance=_number(fields, "tolerance"),
        promised=promised,
        bins=tuple(_integers(fields, "bins")),
        reference=_reference(fields.optional_group("reference")),
    )
    return Watch(settings, tuple(_look(row) for row in _rows(fields, "looks")))


def _reference(fields: Fields | None) -> Reference | None:
    if fields is None:
        return None
    counts = tuple(_integers(fields, "counts"))
    if any(abs(count) > MOST_COUNT for count in counts):
        raise FormatError("the watch has a reference whose counts are too large")
    known = Reference(counts, _number(fields, "epsilon"), fields.take("noises", int))
    fields.finish()
    return known


def _look(row: Fields) -> Look:
    look = Look(row.take("name", str), row.take("made", str), tuple(_integers(row, "counts")), optional_versions(row))
    row.finish()
    try:
        made = datetime.fromisoformat(look.made)
    except ValueError:
        made = None
    if made is None or made.tzinfo is None or len(look.made) > 40:
        raise FormatError("the watch has a look whose time is none")
    return look


def _rows(fields: Fields, name: str) -> list[Fields]:
    rows = fields.take(name, list)
    return [Fields("watch", row if isinstance(row, dict) else {}, name) for row in rows]


def _integers(fields: Fields, name: str) -> list[int]:
    found: list[int] = fields.take(name, list)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        raise FormatError(f"the watch's {name} must be integers")
    return found


def _number(fields: Fields, name: str) -> float:
    value = float(fields.take(name, (float, int)))
    if not math.isfinite(value):
        raise FormatError(f"the watch's field {name!r} must be finite")
    return value


documents.register(
    Watch, documents.Kind(KIND, "watch", _fields, _read, integer_bits=63, since_2=frozenset({"looks.versions"}))
)
