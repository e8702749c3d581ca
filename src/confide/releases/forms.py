"""Releases as JSON: their fields, how they are read, and what is computed again before it is believed."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from confide.candidates import BUILDERS, Candidates
from confide.errors import ConfideError, FormatError
from confide.guarantee import CERTIFICATES, GUARANTEE_KINDS, Guarantee
from confide.mechanisms import (
    NEIGHBORS,
    LabelPrivacy,
    Neighbors,
    NoisyLabels,
    NoisySearch,
    PrivacyStatement,
    Slopes,
    certify,
    mechanism_fields,
    noisy_labels_for,
    privacy_statement,
    published_candidates,
    read_mechanism,
)
from confide.planning import read_population
from confide.releases.calibration import FORMS, Calibration, Form, Release
from confide.releases.documents import Kind, register
from confide.releases.noisy_labels import MOST_CLASSES, NoisyLabelCalibration, read_label_epsilon
from confide.releases.several import GroupCalibration, LevelCalibration, RiskCalibration, SidesCalibration
from confide.releases.words import as_number, read_predecessors, read_words, write_predecessors, write_words
from confide.scores import score_kind
from confide.selection import Selector, zcdp_by_square
from confide.support import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Fields,
    check_versions,
    exact_level,
    one_of,
    positive_integer,
)

MOST_CHARACTERS = 20_000_000
_LEAST_SPENT = 0.49
"""The share of the epsilon asked for that a mechanism's proven loss has at least: one half, of `pps`."""


def calibration_fields(c: Calibration) -> dict[str, Any]:
    """The fields of a calibration, as JSON values."""
    return {
        "threshold": as_number(c.threshold),
        "score": c.score,
        "alpha": str(c.alpha),
        "guarantee": c.guarantee.fields(),
        "privacy": _privacy_fields(c.privacy),
        "mechanism": None if c.mechanism is None else mechanism_fields(c.mechanism),
        "candidates": {"size": c.candidates, "recipe": dict(c.recipe)},
        "versions": dict(c.versions),
        **({} if c.population is None else {"population": c.population.fields()}),
        **write_words(c.classes, c.about),
        **write_predecessors(c.predecessors),
    }


def read_calibration(fields: Fields) -> Calibration:
    """The calibration of these fields; refused if it claims what does not follow from its public choices."""
    calibration = _read(fields)
    _check_claims(calibration)
    return calibration


def _check_claims(c: Calibration) -> None:
    """Everything but the threshold follows from the public choices: compute it again and compare."""
    n, records = c.guarantee.n, c.privacy.records_per_person
    if (c.guarantee.n is None) == (c.guarantee.n_min is None) or (c.privacy.neighbors == "replace_one") == (n is None):
        raise FormatError("the calibration must state n exactly under replace_one, and else n_min; do not use it")
    if c.mechanism is None:
        if not math.isinf(c.threshold):
            raise FormatError("the calibration has a finite threshold but no mechanism; do not use it")
    elif isinstance(c.mechanism, Slopes):
        _check_target(c, c.mechanism)
    weight = c.mechanism.weight if isinstance(c.mechanism, Slopes) else None
    if weight != (None if c.population is None else c.population.heaviest):
        raise FormatError("the calibration's mechanism has other weights than its population; do not use it")
    selector: Selector = "permute_and_flip" if c.privacy.rho is None else "exponential"
    privacy = privacy_statement(c.mechanism, c.privacy.neighbors, records, selector)
    private = c.mechanism is not None and c.mechanism.name != "none"
    if isinstance(c.mechanism, NoisySearch):
        _check_search(c, c.mechanism, privacy)
    elif private and not LEAST_LOSS * records * _LEAST_SPENT <= privacy.epsilon <= MOST_LOSS:
        raise FormatError("the calibration has a privacy loss that no release has; do not use it")
    if c.privacy not in (privacy, replace(privacy, rho=_rho_of_0_1(privacy))):
        raise FormatError("the calibration claims another privacy loss than its mechanism has; do not use it")
    terms = c.mechanism, c.alpha, c.candidates, n, c.guarantee.n_min, c.guarantee.delta
    guarantee = certify(*terms, two_sided=c.guarantee.certificate is not None)
    # A little less is accepted: the certificate is iterative, and another machine may stop one step later.
    near = -1e-5 <= c.guarantee.coverage - guarantee.coverage <= 1e-9
    said = replace(c.guarantee, population=None)
    if not near or replace(guarantee, coverage=c.guarantee.coverage) != said:
        raise FormatError("the calibration claims another coverage than its mechanism guarantees; do not use it")
    _check_scores_recipe(c)


def _check_search(c: Calibration, mechanism: NoisySearch, privacy: PrivacyStatement) -> None:
    """Refuse a search that asks more than its loss is stated for, or another rank than the level's."""
    rank = None if c.guarantee.n is None else math.ceil((1 - c.alpha) * (c.guarantee.n + 1))
    published = mechanism.name == "pcoqs-published"
    planned = mechanism.rank == rank and max(1, mechanism.asks(c.candidates)) <= mechanism.halvings
    if not planned or (published and c.candidates != published_candidates().size):
        raise FormatError(
            "the calibration's mechanism is no search that its level and candidates ask for; do not use it"
        )
    if privacy.rho is None or not LEAST_LOSS * 0.99 <= privacy.rho <= MOST_LOSS:
        raise FormatError("the calibration has a privacy loss that no release has; do not use it")


def _check_target(c: Calibration, mechanism: Slopes) -> None:
    """Refuse target ranks that no plan makes: they would serve another level than the one that is stated."""
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
        raise FormatError("the calibration's mechanism aims at another level than it states; do not use it")


def _check_scores_recipe(c: Calibration) -> None:
    """Candidates that are the scores themselves belong to releases without privacy only."""
    if c.recipe.get("kind") == "scores":
        plain = c.mechanism is None or c.mechanism.name == "none"
        if not plain or c.candidates != (c.guarantee.n or 0) + 1:
            raise FormatError("the calibration has its own scores as candidates; do not use it")


def _read(fields: Fields) -> Calibration:
    alpha = exact_level("alpha", fields.take("alpha", str))
    candidates = fields.group("candidates")
    recipe = candidates.take("recipe", dict)
    most = MOST_RECORDS + 1 if recipe.get("kind") == "scores" else MOST_CANDIDATES
    size = positive_integer("candidates.size", candidates.take("size", int), most=most)
    candidates.finish()
    mechanism = fields.optional_group("mechanism")
    population = read_population(fields.group("population")) if "population" in fields else None
    guarantee = read_guarantee(fields.group("guarantee"))
    calibration = Calibration(
        threshold=read_threshold(fields.take("threshold", (float, int, str)), read_candidates(size, recipe)),
        alpha=alpha,
        guarantee=guarantee if population is None else replace(guarantee, population=str(population)),
        privacy=_privacy(fields.group("privacy")),
        mechanism=None if mechanism is None else read_mechanism(mechanism),
        candidates=size,
        recipe=recipe,
        score=fields.optional("score", (str,), lambda v: score_kind(v).name),
        versions=check_versions("calibration", fields.take("versions", dict)),
        population=population,
        **read_words(fields),
        predecessors=read_predecessors(fields),
    )
    if mechanism is not None:
        mechanism.finish()
    return calibration


def read_guarantee(fields: Fields) -> Guarantee:
    """Take what is promised about coverage."""
    coverage = float(fields.take("coverage", (float, int)))
    if not 0 <= coverage <= 1:
        raise FormatError("the calibration's guarantee.coverage must lie in [0, 1]")
    guarantee = Guarantee(
        kind=one_of("guarantee.kind", fields.take("kind", str), GUARANTEE_KINDS),
        coverage=coverage,
        delta=fields.optional("delta", (float,), lambda v: float(exact_level("guarantee.delta", v))),
        n=fields.optional("n", (int,), lambda v: positive_integer("guarantee.n", v, most=MOST_RECORDS)),
        n_min=fields.optional("n_min", (int,), lambda v: positive_integer("n_min", v, most=MOST_RECORDS)),
        certificate=one_of("guarantee.certificate", fields.take("certificate", str), CERTIFICATES)
        if "certificate" in fields
        else None,
    )
    fields.finish()
    return guarantee


def _rho_of_0_1(privacy: PrivacyStatement) -> float | None:
    """The zCDP loss that version 0.1 states for the exponential mechanism, epsilon^2/8: larger, so also true."""
    return None if privacy.rho is None else zcdp_by_square(privacy.epsilon)


def _privacy_fields(privacy: PrivacyStatement) -> dict[str, Any]:
    """A statement's fields: `rho` is epsilon^2/8, as version 0.1 writes it; the smaller figure is `zcdp`."""
    values = {k: as_number(v) for k, v in asdict(privacy).items() if k != "claimed" or v is not None}
    if privacy.rho == _rho_of_0_1(privacy):
        return values
    return {"zcdp" if k == "rho" else k: v for k, v in values.items()}


def _privacy(fields: Fields) -> PrivacyStatement:
    stated = "zcdp" if "zcdp" in fields else "rho"
    statement = PrivacyStatement(
        neighbors=one_of("privacy.neighbors", fields.take("neighbors", str), NEIGHBORS),
        epsilon=read_loss(fields, "epsilon"),
        records_per_person=positive_integer(
            "records_per_person", fields.take("records_per_person", int), most=MOST_PER_PERSON
        ),
        add_remove=fields.optional("add_remove", (float, int, str), lambda v: _loss(v, "privacy.add_remove")),
        replace_one=read_loss(fields, "replace_one"),
        rho=fields.optional(stated, (float, int), lambda v: _loss(v, f"privacy.{stated}")),
        claimed=_loss(fields.take("claimed", float), "privacy.claimed") if "claimed" in fields else None,
    )
    fields.finish()
    if (stated == "rho") != (statement.rho == _rho_of_0_1(statement)):
        raise FormatError("the calibration claims another privacy loss than its mechanism has; do not use it")
    return statement


def read_candidates(size: int, recipe: Mapping[str, Any]) -> Candidates | None:
    """The candidates that the recipe makes; None if it tells no more than their number."""
    kind = recipe.get("kind")
    options = {key: option for key, option in recipe.items() if key != "kind"}
    if kind == "scores" and not options:
        return None
    if kind in ("of", "from_reference"):
        stated = positive_integer("candidates.recipe.size", options.pop("size", None), most=MOST_CANDIDATES)
        if options or stated != size:
            raise FormatError("the calibration describes its candidates wrongly")
        return None
    if kind not in BUILDERS:
        raise FormatError("the calibration names candidates of an unknown kind")
    try:
        candidates: Candidates | None = Candidates.made_by(recipe)
    except ConfideError:
        candidates = None
    if candidates is None or candidates.size != size or candidates.recipe != recipe:
        raise FormatError("the calibration describes its candidates wrongly")
    return candidates


def read_threshold(value: float | str, candidates: Candidates | None) -> float:
    """The threshold, checked to be one of the candidates where they are known."""
    if isinstance(value, str):
        if value != "+inf":
            raise FormatError("the calibration's threshold must be a number or '+inf'")
        return math.inf
    if candidates is not None and value not in candidates.edges:
        raise FormatError("the calibration's threshold is not one of its candidates; do not use it")
    return float(value)


def read_loss(fields: Fields, key: str) -> float:
    """Take a privacy loss, as `as_number` wrote it."""
    return _loss(fields.take(key, (float, int, str)), f"privacy.{key}")


def _loss(value: float | str, name: str) -> float:
    if value == "+inf":
        return math.inf
    if isinstance(value, str) or not 0 <= value < math.inf:
        raise FormatError(f"the calibration's {name} must not be negative")
    return float(value)


def label_fields(c: NoisyLabelCalibration) -> dict[str, Any]:
    """The fields of such a calibration, as JSON values."""
    return {
        "threshold": as_number(c.threshold),
        "score": c.score,
        "alpha": str(c.alpha),
        "guarantee": c.guarantee.fields(),
        "privacy": {"protected": "labels", "model": "local", "epsilon": c.privacy.epsilon},
        "mechanism": {
            "name": c.mechanism.name,
            "label_epsilon": c.mechanism.epsilon,
            "classes": c.mechanism.classes,
            "rank": c.mechanism.rank,
        },
        "candidates": {"size": c.candidates, "recipe": dict(c.recipe)},
        "versions": dict(c.versions),
        **write_words(c.classes, c.about),
    }


def read_label_calibration(fields: Fields) -> NoisyLabelCalibration:
    """The calibration of these fields; refused if it claims what does not follow from its public choices."""
    alpha = exact_level("alpha", fields.take("alpha", str))
    candidates = fields.group("candidates")
    recipe = candidates.take("recipe", dict)
    size = positive_integer("candidates.size", candidates.take("size", int), most=MOST_CANDIDATES)
    candidates.finish()
    privacy = fields.group("privacy")
    one_of("privacy.protected", privacy.take("protected", str), ("labels",))
    one_of("privacy.model", privacy.take("model", str), ("local",))
    epsilon = read_label_epsilon("privacy.epsilon", privacy.take("epsilon", (float, int)))
    privacy.finish()
    mechanism = fields.group("mechanism")
    one_of("mechanism.name", mechanism.take("name", str), (NoisyLabels.name,))
    stated = NoisyLabels(
        read_label_epsilon("mechanism.label_epsilon", mechanism.take("label_epsilon", (float, int))),
        positive_integer("mechanism.classes", mechanism.take("classes", int), most=MOST_CLASSES),
        positive_integer("mechanism.rank", mechanism.take("rank", int)),
    )
    mechanism.finish()
    guarantee = read_guarantee(fields.group("guarantee"))
    if stated.classes < 2 or guarantee.n is None:
        raise FormatError("the calibration must state two classes or more, and n; do not use it")
    if stated.epsilon != epsilon:
        raise FormatError("the calibration claims another privacy loss than its labels have; do not use it")
    planned = noisy_labels_for(1 - alpha, guarantee.n, epsilon, stated.classes, guarantee.delta)
    if abs(planned.rank - stated.rank) > 1 or guarantee != stated.guarantee(1 - alpha, guarantee.n, guarantee.delta):
        raise FormatError("the calibration claims another coverage than its mechanism guarantees; do not use it")
    calibration = NoisyLabelCalibration(
        threshold=read_threshold(fields.take("threshold", (float, int, str)), read_candidates(size, recipe)),
        alpha=alpha,
        guarantee=guarantee,
        privacy=LabelPrivacy.of(epsilon),
        mechanism=stated,
        candidates=size,
        recipe=recipe,
        score=score_kind(fields.take("score", str)).name,
        versions=check_versions("calibration", fields.take("versions", dict)),
        **read_words(fields),
    )
    known = calibration.classes
    if recipe.get("kind") == "scores" or score_kind(calibration.score).task != "classification":
        raise FormatError("the calibration must be of a classification score and of public candidates; do not use it")
    if known is not None and stated.classes != (known if isinstance(known, int) else len(known)):
        raise FormatError("the calibration names other classes than its labels had; do not use it")
    return calibration


_OUTER: Mapping[str, Callable[[Fields], Any]] = {
    "by": lambda fields: one_of("by", fields.take("by", str), ("group", "class")),
    "neighbors": lambda fields: one_of("neighbors", fields.take("neighbors", str), NEIGHBORS),
    "loss": lambda fields: fields.take("loss", str),
    "bound": lambda fields: fields.take("bound", (float, int)),
}
"""How what files say of a whole release is read."""


def several_fields(release: Release) -> dict[str, Any]:
    """The fields of a release with parts: an envelope around the documents of these, as `FORMS` says."""
    form = FORMS[release.by]
    parts = [
        {"name": form.written(key), "calibration": json.loads(part.to_json())} for key, part in release.parts.items()
    ]
    outer = {name: getattr(release, name) for name in form.outer}
    return {**outer, "privacy": {"epsilon": as_number(release.privacy.epsilon)}, "parts": parts}


def read_several(fields: Fields, form: Form, made: Callable[..., Release], names: tuple[str, ...]) -> Release:
    """The release that is `made` of the parts by their names, which must be these if any are, and of what is beside.

    It has to cost what the file states.
    """
    outer = {name: _OUTER[name](fields) for name in form.outer}
    listed, parts = fields.take("parts", list), dict[Any, Calibration]()
    for content in listed:
        part = Fields(fields.document, content if isinstance(content, dict) else {}, "parts")
        name = part.take("name", (str, int))
        parts[name] = Calibration.from_json(json.dumps(part.take("calibration", dict)))
        part.finish()
    if len(parts) != len(listed):
        raise FormatError(f"the {fields.document} names a part twice")
    if names and set(parts) != set(names):
        raise FormatError(f"the {fields.document} must have the parts {' and '.join(names)}")
    release = made(parts, **outer)
    privacy = fields.group("privacy")
    if read_loss(privacy, "epsilon") != release.privacy.epsilon:
        raise FormatError(f"the {fields.document} claims another privacy loss than its parts have; do not use it")
    privacy.finish()
    return release


def _levels(parts: Mapping[Any, Calibration]) -> LevelCalibration:
    return LevelCalibration({exact_level("alpha", str(name)): part for name, part in parts.items()})


def _groups(parts: Mapping[Any, Calibration], by: Any, neighbors: Neighbors) -> GroupCalibration:
    if len({str(part.guarantee) for part in parts.values()}) > 1:  # what is promised for each is said once
        raise FormatError(f"the release promises more for one {by} than for another; do not use it")
    return GroupCalibration(by, neighbors, parts)


def _sides(parts: Mapping[Any, Calibration]) -> SidesCalibration:
    return SidesCalibration(**parts)


def _risk(parts: Mapping[Any, Calibration], loss: str, bound: float) -> RiskCalibration:
    return RiskCalibration(loss, bound, parts["critical"])


_SEVERAL: tuple[tuple[type[Release], Form, Callable[..., Release], tuple[str, ...]], ...] = (
    (LevelCalibration, FORMS["level"], _levels, ()),
    (GroupCalibration, FORMS["group"], _groups, ()),
    (SidesCalibration, FORMS["side"], _sides, ("low", "high")),
    (RiskCalibration, FORMS["loss"], _risk, ("critical",)),
)
"""Classes of releases with parts: their form, and what makes one of parts that have these names."""

for _class, _form, _made, _names in _SEVERAL:
    _read_kind = partial(read_several, form=_form, made=_made, names=_names)
    register(_class, Kind(_form.kind, "release", several_fields, _read_kind))

register(
    Calibration,
    Kind(
        "confide.calibration",
        "calibration",
        calibration_fields,
        read_calibration,
        MOST_CHARACTERS,
        integer_bits=63,
        since_2=frozenset(
            {
                "classes",
                "about",
                "population",
                "predecessors",
                "mechanism.rise",
                "candidates.recipe.of",
                "privacy.zcdp",
                "guarantee.certificate",
            }
        ),
    ),
)
register(
    NoisyLabelCalibration,
    Kind("confide.noisy-labels", "calibration", label_fields, read_label_calibration, integer_bits=63),
)
