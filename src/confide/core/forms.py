"""Releases as JSON: their fields, how they are read, and the verification of their claims."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from confide.arrays import GroupColumns
from confide.candidates import BUILDERS, Candidates
from confide.core.calibration import Calibration, Release, mark_uncompared
from confide.core.divisions import FORMS, OVERLAPPING, Form
from confide.core.documents import Kind, common_form, register
from confide.core.fingerprint import FINGERPRINT
from confide.core.population import POPULATION
from confide.core.published_counts import CountsCalibration
from confide.core.several import (
    GroupCalibration,
    LevelCalibration,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
)
from confide.core.words import WORDS
from confide.errors import ConfideError, FormatError
from confide.guarantee import CERTIFICATES, GUARANTEE_KINDS, Guarantee
from confide.mechanisms import (
    CHOSEN,
    MECHANISM,
    NEIGHBORS,
    PUBLISHED,
    SIZE,
    Neighbors,
    PrivacyStatement,
    Slopes,
    StatedPrivacy,
    certify,
    design_for,
    privacy_statement,
    with_choice,
)
from confide.scores import SCORE
from confide.support import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    VERSIONS,
    Fields,
    canonical_name,
    exact_level,
    positive_integer,
    shapes,
)

MOST_CHARACTERS = 20_000_000
_UNUSABLE = "Do not use it"
_LEAST_SPENT = 0.49
"""A mechanism's proven privacy loss is at least this share of the requested epsilon: one half, of `pps`."""


_PRIVACY: shapes.Shape = {
    "neighbors": shapes.choice(*NEIGHBORS),
    "epsilon": shapes.LOSS,
    "records_per_person": shapes.integer(MOST_PER_PERSON),
    "add_remove": shapes.nullable(shapes.LOSS),
    "replace_one": shapes.LOSS,
    "rho": shapes.nullable(shapes.number(0)),
    "claimed": shapes.optional(shapes.number(0)),
}


def _other_loss() -> FormatError:
    return FormatError("calibration.privacy", "must be the privacy loss of its mechanism", remedy=_UNUSABLE)


def _no_loss() -> FormatError:
    return FormatError("calibration.privacy", "must be a privacy loss that a release can have", remedy=_UNUSABLE)


def _other_coverage() -> FormatError:
    return FormatError("calibration.guarantee", "must follow from its mechanism", remedy=_UNUSABLE)


def _other_recipe() -> FormatError:
    return FormatError("calibration.candidates.recipe", "must be that of its candidates", remedy=_UNUSABLE)


_DELTA = shapes.Field("a number in (0, 1)", (float,), lambda value: float(exact_level("delta", value)))
GUARANTEE = shapes.Field(
    "a guarantee",
    (dict,),
    lambda values: Guarantee(**values),
    Guarantee.fields,
    shape=lambda _: {
        "kind": shapes.choice(*GUARANTEE_KINDS),
        "coverage": shapes.number(0, 1),
        "delta": shapes.nullable(_DELTA),
        "n": shapes.nullable(shapes.integer()),
        "n_min": shapes.nullable(shapes.integer()),
        "certificate": shapes.optional(shapes.choice(*CERTIFICATES)),
    },
)
_THRESHOLD = shapes.or_infinite(shapes.number())
_CANDIDATES = shapes.Field(
    "the number of candidates and their recipe",
    (dict,),
    attribute="",
    shape={
        "size": replace(shapes.integer(MOST_RECORDS + 1), attribute="candidates"),
        "recipe": shapes.Field("an object", (dict,), write=dict),
    },
)

CALIBRATION: shapes.Shape = {
    "threshold": _THRESHOLD,
    "score": shapes.nullable(SCORE),
    "alpha": shapes.LEVEL,
    "guarantee": GUARANTEE,
    "privacy": shapes.record(PrivacyStatement, _PRIVACY),
    "mechanism": shapes.nullable(MECHANISM),
    "candidates": _CANDIDATES,
    "versions": VERSIONS,
    "population": POPULATION,
    **WORDS,
    "renews": shapes.hexadecimal(optional=True),
    "size": SIZE,
    "chosen": CHOSEN,
    "fingerprint": FINGERPRINT,
}
"""The fields of a calibration."""


def calibration_fields(c: Calibration) -> dict[str, Any]:
    """The fields of a calibration, as JSON values."""
    return shapes.write_shape(c, CALIBRATION)


def read_calibration(fields: Fields) -> Calibration:
    """Read a calibration; raises an error if a claim does not follow from its public choices."""
    values = shapes.read_shape(fields, CALIBRATION)
    calibration = Calibration(**_arguments(values))
    if (population := calibration.population) is not None:
        guarantee = replace(calibration.guarantee, population=str(population))
        calibration = replace(calibration, guarantee=guarantee)
    _check_claims(calibration)
    mark_uncompared(calibration)
    return calibration


def _arguments(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a calibration: its threshold must be one of its candidates, and every field present."""
    size, recipe = values["candidates"].values()
    listed = read_candidates(size, recipe)
    finite = not math.isinf(values["threshold"])
    if finite and listed is not None and values["threshold"] not in listed.edges:
        raise FormatError("calibration.threshold", "must be one of its candidates", remedy=_UNUSABLE)
    stated = {name: value for name, value in values.items() if value is not None or not CALIBRATION[name].optional}
    return stated | {"candidates": size, "recipe": recipe}


def _check_claims(c: Calibration) -> None:
    """Everything but the threshold follows from the public choices: compute it and compare."""
    n, records = c.guarantee.n, c.privacy.records_per_person
    if (c.guarantee.n is None) == (c.guarantee.n_min is None) or (c.privacy.neighbors == "replace_one") == (n is None):
        raise FormatError("calibration.guarantee", "must state n under replace_one, and else n_min", remedy=_UNUSABLE)
    if c.mechanism is None:
        if not math.isinf(c.threshold):
            raise FormatError("calibration.threshold", "must be +inf without a mechanism", remedy=_UNUSABLE)
    elif isinstance(c.mechanism, Slopes):
        _check_target(c, c.mechanism)
    weight = c.mechanism.weight if isinstance(c.mechanism, Slopes) else None
    if weight != (None if c.population is None else c.population.heaviest):
        raise FormatError("calibration.mechanism.weight", "must be that of its population", remedy=_UNUSABLE)
    _check_size(c)
    scale = None if c.size is None else c.size.scale
    alone = privacy_statement(c.mechanism, c.privacy.neighbors, records, scale)
    if c.chosen is not None:
        possible = LEAST_LOSS * 0.99 <= c.chosen.epsilon <= MOST_LOSS
        if c.privacy.neighbors != "add_remove" or not possible:
            must = "must be a choice with a secret number of records and a possible privacy loss"
            raise FormatError("calibration.chosen", must, remedy=_UNUSABLE)
    privacy = with_choice(alone, None if c.chosen is None else c.chosen.epsilon)
    private = c.mechanism is not None and c.mechanism.name != "none"
    if private and not LEAST_LOSS * records * _LEAST_SPENT <= privacy.epsilon <= MOST_LOSS:
        raise _no_loss()
    if c.privacy != privacy:
        raise _other_loss()
    terms = c.mechanism, c.alpha, c.candidates, n, c.guarantee.n_min, c.guarantee.delta
    guarantee = certify(*terms, two_sided=c.guarantee.certificate is not None)
    # The last digits may differ on another machine.
    near = -1e-9 <= c.guarantee.coverage - guarantee.coverage <= 1e-9
    stated = replace(c.guarantee, population=None)
    if not near or replace(guarantee, coverage=c.guarantee.coverage) != stated:
        raise _other_coverage()
    _check_scores_recipe(c)


def _check_size(c: Calibration) -> None:
    """Reject a noisy number of records in a release that cannot have one, or with a design for another number."""
    if c.size is None:
        return
    possible = isinstance(c.mechanism, Slopes) and c.privacy.neighbors == "add_remove"
    if not possible or c.size.design_for != design_for(c.size.counted, c.size.scale, c.guarantee.n_min or 1):
        must = "must be a noisy secret number of records with the design for it"
        raise FormatError("calibration.size", must, remedy=_UNUSABLE)


def _check_target(c: Calibration, mechanism: Slopes) -> None:
    """Reject target ranks that no plan has: they would belong to another level than the stated one."""
    level, n = 1 - c.alpha, c.guarantee.n
    if n is not None:
        target = mechanism.target(n)
        aimed = target >= level * (n + 1) or c.guarantee.coverage >= float(level)
        planned = mechanism.rate == 0 and not mechanism.head_start and not mechanism.fade and 0 < target <= n and aimed
    elif c.guarantee.delta is not None:
        planned = mechanism.rate > level and not mechanism.head_start and not mechanism.fade
    else:
        planned = mechanism.rate == level
    if not planned:
        raise FormatError("calibration.mechanism", "must aim at the level of the calibration", remedy=_UNUSABLE)


def _check_scores_recipe(c: Calibration) -> None:
    """Only releases without privacy may have the scores themselves as candidates."""
    if c.recipe.get("kind") == "scores":
        plain = c.mechanism is None or c.mechanism.name == "none"
        if not plain or c.candidates != (c.guarantee.n or 0) + 1:
            raise _other_recipe()


def read_candidates(size: int, recipe: Mapping[str, Any]) -> Candidates | None:
    """The candidates that a recipe makes; None if it contains only their number."""
    kind = recipe.get("kind")
    options = {key: option for key, option in recipe.items() if key != "kind"}
    if kind == "scores" and not options:
        return None
    if kind in ("of", "from_reference"):
        stated = positive_integer("candidates.recipe.size", options.pop("size", None), most=MOST_CANDIDATES)
        if options or stated != size:
            raise _other_recipe()
        return None
    if kind not in BUILDERS:
        raise FormatError("calibration.candidates.recipe.kind", "must be known to this version", remedy=_UNUSABLE)
    try:
        candidates: Candidates | None = Candidates.from_recipe(recipe)
    except ConfideError:
        candidates = None
    if candidates is None or candidates.size != size or candidates.recipe != recipe:
        raise _other_recipe()
    return candidates


_UNCOUNTED = ("population", "renews", "size", "chosen")
_COUNTS: shapes.Shape = {name: field for name, field in CALIBRATION.items() if name not in _UNCOUNTED} | {
    "privacy": shapes.Field(
        "a privacy loss as it is stated",
        (dict,),
        lambda values: values["epsilon"],
        lambda privacy: {"stated_by": "maker", "epsilon": None if privacy.concentrated_only else privacy.epsilon},
        shape=lambda _: {"stated_by": shapes.choice("maker"), "epsilon": shapes.nullable(shapes.number())},
    ),
    "mechanism": PUBLISHED,
}
"""The fields of a calibration from counts that another engine made; their loss follows from their noise."""


def counts_fields(c: CountsCalibration) -> dict[str, Any]:
    """The fields of such a calibration, as JSON values."""
    return shapes.write_shape(c, _COUNTS)


def read_counts_calibration(fields: Fields) -> CountsCalibration:
    """Read such a calibration; raises an error if a claim does not follow from its public choices."""
    values = shapes.read_shape(fields, _COUNTS)
    stated, mechanism = values["guarantee"], values["mechanism"]
    if (stated.n is None) == (stated.n_min is None):
        raise FormatError("calibration.guarantee", "must state either n or n_min", remedy=_UNUSABLE)
    c = CountsCalibration(
        **_arguments(values | {"privacy": StatedPrivacy.of(mechanism.noise, stated.n, values["privacy"])})
    )
    if stated != mechanism.guarantee(1 - c.alpha, c.candidates, stated.n, stated.n_min, stated.delta):
        raise _other_coverage()
    if c.recipe.get("kind") == "scores":
        raise _other_recipe()
    mark_uncompared(c)
    return c


_PART = {
    "name": shapes.Field("a text or an integer", (str, int)),
    "calibration": shapes.Field("a calibration", (dict,), lambda content: Calibration.from_json(json.dumps(content))),
}


def _columns(listed: tuple[dict[str, Any], ...]) -> GroupColumns:
    columns = GroupColumns({column["name"]: column["groups"] for column in listed})
    if len(columns) != len(listed):
        raise FormatError("release.columns", "must have different names")
    return columns


_COLUMN = {"name": shapes.TEXT, "groups": shapes.listed(_PART["name"])}
_SEVERAL: shapes.Shape = {
    "columns": shapes.Field(
        "a list of columns",
        (list,),
        _columns,
        lambda made: [{"name": name, "groups": list(groups)} for name, groups in made.columns.items()],
        entry=shapes.Field("a column of groups", (dict,), shape=_COLUMN),
    ),
    "by": shapes.choice("group", "class"),
    "neighbors": shapes.choice(*NEIGHBORS),
    "loss": shapes.TEXT,
    "bound": shapes.Field("a number", (float, int)),  # as it was written
    "privacy": shapes.Field("a privacy loss", (dict,), shape={"epsilon": shapes.LOSS}),
    "parts": shapes.listed(shapes.Field("a part", (dict,), shape=_PART)),
}
"""The fields of releases with parts; each form has some of the first ones."""


def several_fields(release: Release, form: Form) -> dict[str, Any]:
    """The fields of a release with parts: an envelope around their documents, as in `FORMS`."""
    parts = [
        {"name": form.written(key), "calibration": json.loads(part.to_json())} for key, part in release.parts.items()
    ]
    outer = shapes.write_shape(release, {name: _SEVERAL[name] for name in form.outer})
    return {**outer, "privacy": {"epsilon": shapes.json_number(release.privacy.epsilon)}, "parts": parts}


def read_several(fields: Fields, form: Form, made: Callable[..., Release], names: tuple[str, ...]) -> Release:
    """Make a release from its parts by name (exactly `names`, unless that is empty) and its other fields.

    Its privacy loss must be the stated one.
    """
    shape = {name: _SEVERAL[name] for name in (*form.outer, "privacy", "parts")}
    values = shapes.read_shape(fields, shape)
    listed, stated = values.pop("parts"), values.pop("privacy")["epsilon"]
    parts = {part["name"]: part["calibration"] for part in listed}
    if len(set(map(canonical_name, parts))) != len(listed):
        raise FormatError("release.parts", "must have different names")
    if names and set(parts) != set(names):
        raise FormatError("release.parts", f"must be {' and '.join(names)}")
    release = made(parts, **values)
    if stated != release.privacy.epsilon:
        raise FormatError("release.privacy.epsilon", "must be the privacy loss of its parts together", remedy=_UNUSABLE)
    return release


def _levels(parts: Mapping[Any, Calibration]) -> LevelCalibration:
    return LevelCalibration({exact_level("alpha", str(name)): part for name, part in parts.items()})


def _groups(parts: Mapping[Any, Calibration], by: Any, neighbors: Neighbors) -> GroupCalibration:
    if len({str(part.guarantee) for part in parts.values()}) > 1:  # the guarantee of all parts is stated once
        raise FormatError("release.parts", f"must have the same guarantee for each {by}", remedy=_UNUSABLE)
    return GroupCalibration(by, neighbors, parts)


def _overlapping(
    parts: Mapping[Any, Calibration], by: Any, neighbors: Neighbors, columns: GroupColumns
) -> OverlappingCalibration:
    _groups(parts, by, neighbors)  # the same checks
    return OverlappingCalibration(by, neighbors, parts, columns)


def _sides(parts: Mapping[Any, Calibration]) -> SidesCalibration:
    return SidesCalibration(**parts)


def _risk(parts: Mapping[Any, Calibration], loss: str, bound: float) -> RiskCalibration:
    return RiskCalibration(loss, bound, parts["critical"])


_KINDS: tuple[tuple[type[Release], Form, Callable[..., Release], tuple[str, ...]], ...] = (
    (LevelCalibration, FORMS["level"], _levels, ()),
    (GroupCalibration, FORMS["group"], _groups, ()),
    (OverlappingCalibration, OVERLAPPING, _overlapping, ()),
    (SidesCalibration, FORMS["side"], _sides, ("low", "high")),
    (RiskCalibration, FORMS["loss"], _risk, ("critical",)),
)
"""Classes of releases with parts: their form, the function that makes them, and the names of the parts."""

for _class, _form, _make, _names in _KINDS:
    _read_kind = partial(read_several, form=_form, made=_make, names=_names)
    register(_class, Kind(common_form(_form.kind, "release"), partial(several_fields, form=_form), _read_kind))

register(
    Calibration,
    Kind(
        common_form("confide/calibration", "calibration", integer_bits=63),
        calibration_fields,
        read_calibration,
    ),
)
register(
    CountsCalibration,
    Kind(
        common_form("confide/counts-calibration", "calibration", integer_bits=63),
        counts_fields,
        read_counts_calibration,
    ),
)
