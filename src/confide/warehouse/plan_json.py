"""The file of a counting plan: every public choice, and a checksum."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from confide.candidates import Candidates
from confide.errors import FormatError, InputError, InputTypeError
from confide.support import Fields, parse_object
from confide.tables import Classified, People, Regressed, Scored

OPTIONS = ("epsilon", "rho", "neighbors", "n_min", "n_typical", "delta", "records_per_person", "selector", "mechanism")
"""What a plan keeps of the options of `calibrate`."""

_KIND, _SCHEMA, _MOST_CHARACTERS = "confide.counting-plan", 1, 10_000_000


def written(counted: Mapping[str, Any], asked: Mapping[str, Any], digest: str) -> str:
    """The text of a plan: what is counted, what is asked of the counts, and the digest of the former."""
    content = {"kind": _KIND, "schema": _SCHEMA, "digest": digest, **counted, **asked}
    return json.dumps({**content, "sha256": _checksum(content)}, indent=2, allow_nan=False) + "\n"


def columns_fields(what: Scored | Classified | Regressed) -> dict[str, Any]:
    """The columns of a score, as plain values."""
    if isinstance(what, Scored):
        return {"kind": "score", "column": what.column, "score": what.score}
    if isinstance(what, Classified):
        names = {"probabilities": list(what.probabilities), "classes": list(what.classes or ())}
        return {"kind": "classes", **names, "label": what.label, "label_positions": what.label_positions}
    return {"kind": "numbers", "predictions": list(what.predictions), "target": what.target, "score": what.score}


def read(text: str) -> tuple[dict[str, Any], str]:
    """The arguments of `CountingPlan.of` that a text states, of the right types, and the digest."""
    fields = Fields("counting plan", _intact(text))
    digest = fields.take("digest", str)
    try:
        found = {
            "what": _what(fields.group("columns")),
            "candidates": Candidates.made_by(fields.take("candidates", dict)),
            "skip_incomplete": fields.take("skip_incomplete", bool),
            "n": fields.optional("n", (int,), int),
            **_division(fields.optional_group("by")),
        }
        people = fields.optional_group("people")
        found["people"] = None if people is None else _people(people)
        levels = _texts(fields, "alpha")
        found["alpha"] = levels[0] if len(levels) == 1 else levels
        found |= {name: fields.take(name, (str, int, float, type(None))) for name in OPTIONS}
    except (InputError, InputTypeError) as error:
        raise unusable(error) from None
    fields.finish()
    return found, digest


def unusable(error: Exception) -> FormatError:
    """What is wrong with a choice, as an error of the file."""
    if isinstance(error, FormatError):
        return error
    return FormatError(f"the counting plan has a field that cannot be used: {error}")


def _intact(text: str) -> dict[str, Any]:
    """The fields of a text with a known schema and the right checksum, without these."""
    if len(text) > _MOST_CHARACTERS:
        raise FormatError(f"the counting plan has more than {_MOST_CHARACTERS} characters")
    try:
        content = parse_object(text)
    except ValueError:
        raise FormatError("the counting plan is not a JSON object as `confide sql --plan` writes it") from None
    stated = content.pop("sha256", None)
    if content.get("kind") != _KIND:
        raise FormatError("this is no counting plan as `confide sql --plan` writes it")
    if content.get("schema") != _SCHEMA:
        raise FormatError(f"the counting plan must have schema {_SCHEMA}; a newer one needs a newer confide")
    if stated != _checksum(content):
        raise FormatError("the counting plan is damaged or was altered: its checksum is wrong")
    return {key: value for key, value in content.items() if key not in ("kind", "schema")}


def _what(fields: Fields) -> Scored | Classified | Regressed:
    kind = fields.take("kind", str)
    what: Scored | Classified | Regressed
    if kind == "score":
        what = Scored(fields.take("column", str), fields.optional("score", (str,), str))
    elif kind == "classes":
        columns, classes = _texts(fields, "probabilities"), tuple(fields.take("classes", list))
        positions = fields.take("label_positions", bool)
        what = Classified(tuple(columns), fields.take("label", str), classes, label_positions=positions)
    elif kind == "numbers":
        predictions = _texts(fields, "predictions")
        if len(predictions) not in (1, 2):
            raise FormatError("the counting plan must name one or two columns of predictions")
        named = predictions[0] if len(predictions) == 1 else (predictions[0], predictions[1])
        what = Regressed(named, fields.take("target", str), fields.take("score", str))
    else:
        raise FormatError("the counting plan's columns are of an unknown kind")
    fields.finish()
    return what


def _division(fields: Fields | None) -> dict[str, Any]:
    if fields is None:
        return {}
    kind, column, names = fields.take("kind", str), fields.take("column", str), fields.take("names", list)
    fields.finish()
    if kind == "class":
        return {"by_class": True}
    if kind != "group":
        raise FormatError("the counting plan divides records by something unknown")
    return {"by": column, "groups": names}


def _people(fields: Fields) -> People:
    most, order = fields.take("most", int), tuple(_texts(fields, "order"))
    people = People(fields.take("person", str), most, order, fields.optional("sample", (str,), str))
    fields.finish()
    return people


def _texts(fields: Fields, key: str) -> list[str]:
    listed: list[Any] = fields.take(key, list)
    if not all(isinstance(one, str) for one in listed):
        raise FormatError(f"the counting plan's field {key!r} must hold texts")
    return listed


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
