"""Releases of several thresholds as JSON, schema 1: an envelope around the documents of their parts."""

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar

from confide.calibration.risk import RiskCalibration
from confide.errors import ConfideError, FormatError
from confide.mechanisms.privacy import NEIGHBORS
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration, _Several
from confide.support.checks import one_of
from confide.support.rationals import exact_level
from confide.support.strict_json import parse_object

SCHEMA = 1
MOST_CHARACTERS = 50_000_000
_NAME_BITS = 2**14  # groups may be named by any integer that Python reads
KINDS: Mapping[str, type[_Several]] = {
    "confide.levels": LevelCalibration,
    "confide.groups": GroupCalibration,
    "confide.sides": SidesCalibration,
    "confide.risk": RiskCalibration,
}

Kind = TypeVar("Kind", bound=_Several)


def dumps(release: _Several) -> str:
    """One JSON object, closed by a SHA-256 of its content."""
    content: dict[str, Any] = {"kind": next(k for k, c in KINDS.items() if isinstance(release, c)), "schema": SCHEMA}
    parts: list[tuple[str | int, Calibration]]
    if isinstance(release, LevelCalibration):
        parts = [(str(alpha), part) for alpha, part in release.parts.items()]
    elif isinstance(release, GroupCalibration):
        content |= {"by": release.by, "neighbors": release.neighbors}
        parts = list(release.parts.items())
    elif isinstance(release, RiskCalibration):
        content |= {"loss": release.loss, "bound": release.bound}
        parts = [("critical", release.calibration)]
    else:
        assert isinstance(release, SidesCalibration)
        parts = [("low", release.low), ("high", release.high)]
    content["privacy"] = {"epsilon": release.privacy.epsilon}
    content["parts"] = [{"name": name, "calibration": json.loads(part.to_json())} for name, part in parts]
    return json.dumps({**content, "sha256": _checksum(content)}, indent=2, allow_nan=False) + "\n"


def loads(text: str, expected: type[Kind]) -> Kind:
    """Read what `dumps` wrote, and refuse everything else."""
    content = _parse(text)
    if KINDS.get(content.get("kind", "")) is not expected:
        raise FormatError(f"the file is not a {expected.__name__}; its kind is another")
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FormatError("the release has no valid schema number")
    if schema > SCHEMA:
        raise FormatError(f"the release has schema {schema}; this version reads up to {SCHEMA}; upgrade confide")
    if content.pop("sha256", None) != _checksum(content):
        raise FormatError("the release was altered or damaged: its checksum does not match; get the original")
    try:
        release = _read(content, expected)
    except FormatError:
        raise
    except (ConfideError, KeyError, TypeError, AttributeError):
        raise FormatError("the release has a field that is missing or cannot be used") from None
    return release


def _read(content: dict[str, Any], expected: type[Kind]) -> Kind:
    extra = {GroupCalibration: {"by", "neighbors"}, RiskCalibration: {"loss", "bound"}}.get(expected, set())
    if set(content) != {"kind", "schema", "privacy", "parts"} | extra or set(content["privacy"]) != {"epsilon"}:
        raise FormatError("the release has unknown fields or lacks some")
    parts: dict[str | int, Calibration] = {}
    for part in content["parts"]:
        name = part["name"]
        if set(part) != {"name", "calibration"} or isinstance(name, bool) or not isinstance(name, str | int):
            raise FormatError("the release has a part with a wrong name or unknown fields")
        parts[name] = Calibration.from_json(json.dumps(part["calibration"]))
    if len(parts) != len(content["parts"]):
        raise FormatError("the release names a part twice")
    release: Any
    if expected is LevelCalibration:
        levels: dict[Fraction, Calibration] = {exact_level("alpha", str(name)): part for name, part in parts.items()}
        release = LevelCalibration(levels)
    elif expected is GroupCalibration:
        by: Any = one_of("by", content["by"], ("group", "class"))
        release = GroupCalibration(by, one_of("neighbors", content["neighbors"], NEIGHBORS), parts)
    elif expected is RiskCalibration:
        release = RiskCalibration(content["loss"], content["bound"], parts["critical"])
    else:
        release = SidesCalibration(parts["low"], parts["high"])
    if content["privacy"]["epsilon"] != release.privacy.epsilon:
        raise FormatError("the release claims another privacy loss than its parts have; do not use it")
    return release  # type: ignore[no-any-return]


def _parse(text: str) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise FormatError(f"the release must be a JSON text of at most {MOST_CHARACTERS} characters")
    try:
        return parse_object(text, integer_bits=_NAME_BITS)
    except ValueError:
        raise FormatError("the file is not a release: it is not valid JSON, or not one object") from None


def _checksum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
