"""Releases of several thresholds as JSON: an envelope around the documents of their parts."""

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from confide.errors import FormatError
from confide.mechanisms import NEIGHBORS
from confide.releases.calibration import Calibration
from confide.releases.calibration_json import read_loss
from confide.releases.kinds import Kind, register
from confide.releases.predecessors import as_number
from confide.releases.release import Release
from confide.releases.risk import RiskCalibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration
from confide.support import Fields, Name, exact_level, one_of

Kin = TypeVar("Kin", bound=Release)


def _read_levels(fields: Fields) -> LevelCalibration:
    parts = _take_parts(fields)
    levels: dict[Fraction, Calibration] = {exact_level("alpha", str(name)): part for name, part in parts.items()}
    return _checked(fields, LevelCalibration(levels))


def _read_groups(fields: Fields) -> GroupCalibration:
    by: Any = one_of("by", fields.take("by", str), ("group", "class"))
    neighbors = one_of("neighbors", fields.take("neighbors", str), NEIGHBORS)
    parts = _take_parts(fields)
    if len({str(part.guarantee) for part in parts.values()}) > 1:  # what is promised for each is said once
        raise FormatError(f"the {fields.document} promises more for one {by} than for another; do not use it")
    return _checked(fields, GroupCalibration(by, neighbors, parts))


def _read_sides(fields: Fields) -> SidesCalibration:
    return _checked(fields, SidesCalibration(**_take_parts(fields, "low", "high")))


def _read_risk(fields: Fields) -> RiskCalibration:
    loss, bound = fields.take("loss", str), fields.take("bound", (float, int))
    return _checked(fields, RiskCalibration(loss, bound, _take_parts(fields, "critical")["critical"]))


def _fields(release: Release, parts: Mapping[Name, Calibration], **others: Any) -> dict[str, Any]:
    return {
        **others,
        "privacy": {"epsilon": as_number(release.privacy.epsilon)},
        "parts": [{"name": name, "calibration": json.loads(part.to_json())} for name, part in parts.items()],
    }


def _take_parts(fields: Fields, *expected: str) -> dict[Any, Calibration]:
    """The parts by their names, which must be the expected ones if there are any."""
    parts: dict[Name, Calibration] = {}
    listed = fields.take("parts", list)
    for content in listed:
        part = Fields(fields.document, content if isinstance(content, dict) else {}, "parts")
        name = part.take("name", (str, int))
        parts[name] = Calibration.from_json(json.dumps(part.take("calibration", dict)))
        part.finish()
    if len(parts) != len(listed):
        raise FormatError(f"the {fields.document} names a part twice")
    if expected and set(parts) != set(expected):
        raise FormatError(f"the {fields.document} must have the parts {' and '.join(expected)}")
    return parts


def _checked(fields: Fields, release: Kin) -> Kin:
    """The release, if it costs what the file states."""
    privacy = fields.group("privacy")
    if read_loss(privacy, "epsilon") != release.privacy.epsilon:
        raise FormatError(f"the {fields.document} claims another privacy loss than its parts have; do not use it")
    privacy.finish()
    return release


_KINDS: tuple[tuple[type, str, Callable[[Any], dict[str, Any]], Callable[[Fields], Release]], ...] = (
    (LevelCalibration, "confide.levels", lambda r: _fields(r, {str(a): p for a, p in r.parts.items()}), _read_levels),
    (GroupCalibration, "confide.groups", lambda r: _fields(r, r.parts, by=r.by, neighbors=r.neighbors), _read_groups),
    (SidesCalibration, "confide.sides", lambda r: _fields(r, {"low": r.low, "high": r.high}), _read_sides),
    (
        RiskCalibration,
        "confide.risk",
        lambda r: _fields(r, {"critical": r.calibration}, loss=r.loss, bound=r.bound),
        _read_risk,
    ),
)
for made, name, fields, read in _KINDS:
    register(made, Kind(name, "release", fields, read))
