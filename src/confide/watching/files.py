"""Files of watches and corrected releases, and the looks that a ledger stores."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import msgspec

from confide.core import Release, documents
from confide.errors import FormatError
from confide.mechanisms import decoded
from confide.support import SCHEMA, UNUSABLE, check_schema, json_number, parse_object, refused_content
from confide.watching.corrected import CorrectedRelease
from confide.watching.watch_state import Look, Watch

LOOK_KIND = "confide/look"
_STATEMENT = "a long-run statement about looks, and no coverage guarantee for one record"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Fraction) else json_number(value)


def _watch_content(watch: Watch) -> dict[str, Any]:
    content: dict[str, Any] = _plain(watch)
    settings = content["settings"]
    settings["promised"] = [{"name": name, "coverage": coverage} for name, coverage in settings["promised"].items()]
    if settings["correction"] is None:
        del settings["correction"]
    return content


def _watch(content: Mapping[str, Any]) -> Watch:
    settings = dict(content["settings"])
    settings["promised"] = {group["name"]: group["coverage"] for group in settings["promised"]}
    # A threshold of +inf is a text in JSON
    if "correction" in settings:
        scales = [scale | {"threshold": float(scale["threshold"])} for scale in settings["correction"]["scales"]]
        settings["correction"] = settings["correction"] | {"scales": scales}
    return msgspec.convert({**content, "settings": settings}, Watch, strict=True, dec_hook=decoded)


def _corrected_content(corrected: CorrectedRelease) -> dict[str, Any]:
    thresholds = [json_number(threshold.threshold) for threshold in corrected.parts.values()]
    inner = {name: json.loads(getattr(corrected, name).to_json()) for name in ("release", "watch")}
    return {"statement": _STATEMENT, "thresholds": thresholds, **inner}


def _corrected(content: Mapping[str, Any]) -> CorrectedRelease:
    return CorrectedRelease(
        Release.from_json(json.dumps(content["release"])), Watch.from_json(json.dumps(content["watch"]))
    )


def look_text(release: str, look: Look) -> str:
    """A look as a ledger stores it; `release` is the checksum of the monitored release."""
    return json.dumps({"kind": LOOK_KIND, "schema": SCHEMA, "release": release, **_plain(look)})


def stored_look(text: str, name: str) -> Look:
    """The look of this name from the text that a ledger stored.

    Raises
    ------
    FormatError
        If it is not one, or was altered.
    """
    with refused_content("look", "look"):
        content = parse_object(text)
        check_schema(content, LOOK_KIND, "look")
        look = msgspec.convert(content, Look, strict=True)
        # Only what is written again with the same content is accepted
        if look.name != name or content != json.loads(look_text(content["release"], look)):
            raise FormatError("look", "must be written as its content is: it was altered", remedy=UNUSABLE)
        return look


_WATCH = documents.common_form("confide/watch", "watch", integer_bits=63)
_CORRECTED = documents.common_form("confide/corrected", "corrected")
documents.register(Watch, documents.Kind(_WATCH, _watch_content, _watch))
documents.register(CorrectedRelease, documents.Kind(_CORRECTED, _corrected_content, _corrected, "corrected release"))
