"""Calibrations as JSON, schema 1. The meaning of an existing field never changes; a new meaning is a new schema."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from confide.candidates import BUILDERS, Candidates
from confide.errors import ConfideError, FormatError, InputTypeError
from confide.guarantee.statement import GUARANTEE_KINDS, Guarantee
from confide.mechanisms.certify import certify
from confide.mechanisms.fields import mechanism_fields, read_mechanism
from confide.mechanisms.privacy import NEIGHBORS, PrivacyStatement, nothing_spent, privacy_statement
from confide.mechanisms.slopes import Slopes
from confide.releases.calibration import Calibration
from confide.scores.kinds import score_kind
from confide.selection.selector import Selector
from confide.support.checks import one_of, positive_integer
from confide.support.limits import LEAST_LOSS, MOST_CANDIDATES, MOST_LOSS, MOST_PER_PERSON, MOST_RECORDS
from confide.support.rationals import exact_level
from confide.support.strict_json import Fields, parse_object

SCHEMA = 1
KIND = "confide.calibration"
MOST_CHARACTERS = 100_000

Value = TypeVar("Value")


def dumps(calibration: Calibration) -> str:
    """One JSON object, two spaces of indentation, closed by a SHA-256 of its content."""
    c = calibration
    content: dict[str, Any] = {
        "kind": KIND,
        "schema": SCHEMA,
        "threshold": _number(c.threshold),
        "score": c.score,
        "alpha": str(c.alpha),
        "guarantee": {
            "kind": c.guarantee.kind,
            "coverage": c.guarantee.coverage,
            "delta": c.guarantee.delta,
            "n": c.guarantee.n,
            "n_min": c.guarantee.n_min,
        },
        "privacy": {
            "neighbors": c.privacy.neighbors,
            "epsilon": _number(c.privacy.epsilon),
            "records_per_person": c.privacy.records_per_person,
            "add_remove": _number(c.privacy.add_remove),
            "replace_one": _number(c.privacy.replace_one),
            "rho": c.privacy.rho,
            **({} if c.privacy.claimed is None else {"claimed": c.privacy.claimed}),
        },
        "mechanism": None if c.mechanism is None else mechanism_fields(c.mechanism),
        "candidates": {"size": c.candidates, "recipe": dict(c.recipe)},
        "versions": dict(c.versions),
    }
    return json.dumps({**content, "sha256": _checksum(content)}, indent=2, allow_nan=False) + "\n"


def loads(text: str) -> Calibration:
    """Read what `dumps` wrote, and refuse everything else (see `Calibration.from_json`)."""
    if isinstance(text, str) and '"confide.federated.calibration"' in text[:100]:
        from confide.federated.calibration import FederatedCalibration

        return FederatedCalibration.from_json(text)
    content = _parse(text)
    if content.get("kind") != KIND:
        raise FormatError("the file is not a confide calibration; it has no field kind = 'confide.calibration'")
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FormatError("the calibration has no valid schema number")
    if schema > SCHEMA:
        raise FormatError(f"the calibration has schema {schema}; this version reads up to {SCHEMA}; upgrade confide")
    if not _is_intact(content):
        raise FormatError("the calibration was altered or damaged: its checksum does not match; get the original")
    try:
        calibration = _read(Fields("calibration", content))
    except FormatError:
        raise
    except ConfideError as error:
        raise FormatError(f"the calibration has a field that cannot be used: {error}") from None
    _check_claims(calibration)
    return calibration


def _check_claims(c: Calibration) -> None:
    """Everything but the threshold follows from the public choices: compute it again and compare."""
    n, records = c.guarantee.n, c.privacy.records_per_person
    if (c.guarantee.n is None) == (c.guarantee.n_min is None) or (c.privacy.neighbors == "replace_one") == (n is None):
        raise FormatError("the calibration must state n exactly under replace_one, and else n_min; do not use it")
    if c.mechanism is None:
        selector: Selector = "permute_and_flip" if c.privacy.rho is None else "exponential"
        privacy = nothing_spent(c.privacy.neighbors, records, selector)
        if not math.isinf(c.threshold):
            raise FormatError("the calibration has a finite threshold but no mechanism; do not use it")
    else:
        if isinstance(c.mechanism, Slopes):
            _check_target(c, c.mechanism)
        privacy = privacy_statement(c.mechanism, c.privacy.neighbors, records)
        if not (LEAST_LOSS * records * 0.99 <= privacy.epsilon <= MOST_LOSS or c.mechanism.name == "none"):
            raise FormatError("the calibration has a privacy loss that no release has; do not use it")
    if c.privacy != privacy:
        raise FormatError("the calibration claims another privacy loss than its mechanism has; do not use it")
    guarantee = certify(c.mechanism, c.alpha, c.candidates, n, c.guarantee.n_min, c.guarantee.delta)
    # A little less is accepted: the certificate is iterative, and another machine may stop one step later.
    if guarantee.kind != c.guarantee.kind or not -1e-5 <= c.guarantee.coverage - guarantee.coverage <= 1e-9:
        raise FormatError("the calibration claims another coverage than its mechanism guarantees; do not use it")
    _check_scores_recipe(c)


def _check_target(c: Calibration, mechanism: Slopes) -> None:
    """Refuse target ranks that no plan makes: they would serve another level than the one that is stated."""
    level, n = 1 - c.alpha, c.guarantee.n
    if n is not None:
        target = mechanism.target(n)
        aimed = target >= level * (n + 1) or c.guarantee.coverage >= float(level)
        planned = mechanism.rate == 0 and mechanism.head_start == 0 and 0 < target <= n and aimed
    elif c.guarantee.delta is not None:
        planned = mechanism.rate > level and mechanism.head_start == 0
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
    guarantee, privacy = fields.group("guarantee"), fields.group("privacy")
    candidates, mechanism = fields.group("candidates"), fields.optional_group("mechanism")
    for known in ("kind", "schema"):
        fields.take(known, (str, int))
    threshold = fields.take("threshold", (float, int, str))
    recipe = candidates.take("recipe", dict)
    most = MOST_RECORDS + 1 if recipe.get("kind") == "scores" else MOST_CANDIDATES
    size = positive_integer("candidates.size", candidates.take("size", int), most=most)
    calibration = Calibration(
        threshold=_threshold(threshold, _candidates(size, recipe)),
        alpha=exact_level("alpha", fields.take("alpha", str)),
        guarantee=Guarantee(
            kind=one_of("guarantee.kind", guarantee.take("kind", str), GUARANTEE_KINDS),
            coverage=_between(guarantee.take("coverage", (float, int)), "guarantee.coverage"),
            delta=guarantee.optional("delta", (float,), lambda v: float(exact_level("guarantee.delta", v))),
            n=guarantee.optional("n", (int,), lambda v: positive_integer("guarantee.n", v, most=MOST_RECORDS)),
            n_min=guarantee.optional("n_min", (int,), lambda v: positive_integer("n_min", v, most=MOST_RECORDS)),
        ),
        privacy=PrivacyStatement(
            neighbors=one_of("privacy.neighbors", privacy.take("neighbors", str), NEIGHBORS),
            epsilon=_loss(privacy.take("epsilon", (float, int, str)), "privacy.epsilon"),
            records_per_person=positive_integer(
                "records_per_person", privacy.take("records_per_person", int), most=MOST_PER_PERSON
            ),
            add_remove=privacy.optional("add_remove", (float, int, str), lambda v: _loss(v, "privacy.add_remove")),
            replace_one=_loss(privacy.take("replace_one", (float, int, str)), "privacy.replace_one"),
            rho=privacy.optional("rho", (float, int), lambda v: _loss(v, "privacy.rho")),
            claimed=_loss(privacy.take("claimed", float), "privacy.claimed") if "claimed" in privacy else None,
        ),
        mechanism=None if mechanism is None else read_mechanism(mechanism),
        candidates=size,
        recipe=recipe,
        score=fields.optional("score", (str,), lambda v: score_kind(v).name),
        versions=fields.take("versions", dict),
    )
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in calibration.versions.items()):
        raise FormatError("the calibration's versions must be texts")
    for group in (fields, guarantee, privacy, candidates, mechanism):
        if group is not None:
            group.finish()
    return calibration


def _candidates(size: int, recipe: Mapping[str, Any]) -> Candidates | None:
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
        candidates: Candidates = getattr(Candidates, kind)(**options)
    except TypeError:
        raise FormatError("the calibration describes its candidates wrongly") from None
    if candidates.size != size or candidates.recipe != recipe:
        raise FormatError("the calibration describes its candidates wrongly")
    return candidates


def _threshold(value: float | str, candidates: Candidates | None) -> float:
    """The threshold, checked to be one of the candidates where they are known."""
    if isinstance(value, str):
        if value != "+inf":
            raise FormatError("the calibration's threshold must be a number or '+inf'")
        return math.inf
    if candidates is not None and value not in candidates.edges:
        raise FormatError("the calibration's threshold is not one of its candidates; do not use it")
    return float(value)


def _between(value: float, name: str) -> float:
    if not 0 <= value <= 1:
        raise FormatError(f"the calibration's {name} must lie in [0, 1]")
    return float(value)


def _number(value: float | None) -> float | str | None:
    """A number as JSON has them: infinity is the text "+inf"."""
    return "+inf" if value == math.inf else value


def _loss(value: float | str, name: str) -> float:
    if value == "+inf":
        return math.inf
    if isinstance(value, str) or not 0 <= value < math.inf:
        raise FormatError(f"the calibration's {name} must not be negative")
    return float(value)


def _parse(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise InputTypeError(f"text must be a JSON document; found {type(text).__name__}")
    if len(text) > MOST_CHARACTERS:
        raise FormatError(f"the file is not a confide calibration: it has more than {MOST_CHARACTERS} characters")
    try:
        return parse_object(text)
    except ValueError:
        raise FormatError("the file is not a confide calibration: it is not valid JSON, or not one object") from None


def _is_intact(content: dict[str, Any]) -> bool:
    """Whether the checksum fits; it is taken out of `content`."""
    try:
        return bool(content.pop("sha256", None) == _checksum(content))
    except RecursionError:
        return False


def _checksum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
