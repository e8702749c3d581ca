"""Releases as files: the request, which is the arguments of `calibrate`, and what was drawn; and published counts.

Guarantee, privacy and all else follow from them by the functions that made the release. A file is accepted only if its
release is written with the same checksum: every claim is verified. Errors name a place and never quote a value.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Literal, get_type_hints

import msgspec
import numpy as np

from confide.arrays import GroupColumns
from confide.candidates import BUILDERS, Candidates, OwnCandidates, Spread
from confide.core.design import Design, published_mechanism
from confide.core.documents import Kind, common_form, register
from confide.core.fingerprint import ModelFingerprint
from confide.core.population import ClassShift, RecordWeights, read_population
from confide.core.promise import promised
from confide.core.published_counts import PublishedCounts
from confide.core.release import Release, mark_uncompared
from confide.core.request import Request
from confide.core.terms import Terms
from confide.core.threshold import Threshold
from confide.core.thresholds import Key
from confide.errors import FormatError
from confide.mechanisms import (
    Chosen,
    Mechanism,
    Noise,
    NoisyHistogram,
    PublishedHistogram,
    Slopes,
    decoded,
    privacy_statement,
    read_mechanism,
)
from confide.support import MOST_CANDIDATES, MOST_RECORDS, UNUSABLE, json_number, refused_content

# The last digits of a coverage may differ on another machine.
_NEAR = 1e-9

# The largest sum of noisy counts, without their signs; their partial sums are 64-bit integers.
_MOST_COUNTED = 2**62

# The least share of the requested epsilon that a mechanism's proven loss is; all but `pps` spend all of it.
_LEAST_SPENT = {"pps": 0.49}

_Infinite = Literal["+inf"]

# The fields of a request with their defaults, which a file leaves out.
_STATED = {field.name: field.default for field in fields(Request) if field.init}

# The types of these fields in a file, where they are not those of the request.
_FORMS: Mapping[str, Any] = get_type_hints(Request) | {
    "alpha": str | list[str],
    "names": list[str | int] | dict[str, list[str | int]],
    "shares": list[str] | None,
    "population": dict[str, Any] | None,
    "classes": list[str | int] | int | None,
    "about": dict[str, str],
    "candidates": dict[str, Any] | None,
    "delta": str | None,
    "mechanism": str,
}

_OPTIONAL = [(name, _FORMS[name], default) for name, default in _STATED.items() if name != "alpha"]
_Request: type[Any] = msgspec.defstruct(
    "_Request", [("alpha", _FORMS["alpha"]), *_OPTIONAL], forbid_unknown_fields=True
)


class _Drawn(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A threshold in a file: what was drawn, and the mechanism that drew it.

    `candidates` is the number from which the list of candidates follows: the quantiles of a spread, or their number. Of
    several levels, only the first has the noisy counts, from which all thresholds follow.
    """

    threshold: float | _Infinite
    coverage: float
    mechanism: dict[str, Any] | None
    candidates: int
    key: str | int | None = None
    counted: int | None = None
    counts: list[int] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):  # without kind, schema and checksum
    request: dict[str, Any]
    thresholds: list[_Drawn]
    epsilon: float | _Infinite
    versions: dict[str, str]
    n: int | None = None


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """The thresholds of one draw in a ledger."""

    thresholds: list[_Drawn]
    versions: dict[str, str]


# Writing.


def entry_text(request: Request, thresholds: Mapping[Key, Threshold], versions: Mapping[str, str]) -> str:
    """The thresholds of one draw as text, for a ledger that stores it with its request."""
    content = _Entry(_all_drawn(request, thresholds), dict(versions))
    return json.dumps(msgspec.to_builtins(content))


def _content(release: Release) -> dict[str, Any]:
    request = release.request
    assert isinstance(request, Request)
    loss: Any = json_number(release.privacy.epsilon)
    drawn = _all_drawn(request, release.parts)
    file = _File(stated_request(request), drawn, epsilon=loss, versions=dict(release.versions), n=release.first.n)
    content: dict[str, Any] = msgspec.to_builtins(file)
    return content


def _all_drawn(request: Request, thresholds: Mapping[Key, Threshold]) -> list[_Drawn]:
    drawn = [_drawn(request.terms[key], threshold, key) for key, threshold in thresholds.items()]
    for later in drawn[1:] if request.joint else ():  # noisy counts that serve several stand at the first
        later.counts = None
    return drawn


def _drawn(terms: Terms, threshold: Threshold, key: Key = None) -> _Drawn:
    return _Drawn(
        threshold="+inf" if math.isinf(threshold.threshold) else threshold.threshold,
        coverage=threshold.coverage,
        mechanism=None if threshold.mechanism is None else threshold.mechanism.stated(),
        candidates=threshold.recipe["size"] if isinstance(terms.spread, Spread) else threshold.candidates,
        key=str(key) if isinstance(key, Fraction) else key,
        counted=None if threshold.size is None else threshold.size.counted,
        counts=None if threshold.noisy_counts is None else list(threshold.noisy_counts),
    )


def stated_request(request: Request) -> dict[str, Any]:
    """The arguments that were given, as JSON values."""
    values = {name: getattr(request, name) for name in _STATED}
    return {name: _plain(value) for name, value in values.items() if value != _STATED[name] and value != {}}


def _plain(value: Any) -> Any:
    # Values of this library, then containers; all others are JSON values.
    match value:
        case Fraction():
            return str(value)
        case Candidates() | OwnCandidates() | Spread():
            return dict(value.recipe)
        case GroupColumns():
            return {name: list(groups) for name, groups in value.columns.items()}
        case ClassShift() | RecordWeights():
            return value.fields()
        case ModelFingerprint() | Chosen() | Noise():
            named = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
            return {name: plain for name, plain in named.items() if plain is not None}
        case tuple():
            return [_plain(element) for element in value]
        case Mapping():
            return dict(value)
    return value


# Reading.


def _read_content(content: dict[str, Any]) -> Release:
    """The release of a file; raises an error for a claim that does not follow."""
    file = msgspec.convert(content, _File, strict=True)
    with refused_content("release.request"):
        request = read_request(file.request)
    if (file.n is None) == request.public_n:
        raise _contradiction("n")
    thresholds = _read_thresholds(request, file.n, file.thresholds)
    if set(thresholds) != set(request.terms) or len(thresholds) != len(file.thresholds):
        raise _contradiction("thresholds")
    release = Release(request, thresholds, file.versions)
    if len({str(threshold.guarantee) for threshold in thresholds.values()}) > 1 and release.disjoint:
        raise _contradiction("thresholds")  # the guarantee of all groups is stated once
    mark_uncompared(release)
    return release


def read_entry(
    request: Request, keys: tuple[Key, ...], n: int | None, text: str
) -> tuple[dict[Key, Threshold], dict[str, str]]:
    """The thresholds, of these keys, and the versions of `entry_text`."""
    with refused_content("entry"):
        entry = msgspec.convert(json.loads(text), _Entry, strict=True)
        thresholds = _read_thresholds(request, n, entry.thresholds)
        if set(thresholds) != set(keys):
            raise _contradiction("thresholds")
        return thresholds, entry.versions


def _read_thresholds(request: Request, n: int | None, stored: list[_Drawn]) -> dict[Key, Threshold]:
    thresholds = {}
    for place, drawn in enumerate(stored):
        with refused_content(f"release.thresholds[{place}]"):
            key = Fraction(str(drawn.key)) if request.by == "level" else drawn.key
            if request.joint and place:  # noisy counts that serve several levels stand at the first
                if drawn.counts is not None:
                    raise _contradiction("counts")
                drawn.counts = stored[0].counts
            thresholds[key] = _read_threshold(request.terms[key], n, drawn)
    return thresholds


def _contradiction(place: str) -> FormatError:
    return FormatError(f"release.{place}", "must follow from the other content of the release", remedy=UNUSABLE)


def read_request(content: dict[str, Any]) -> Request:
    """The request of these arguments as a file has them; every error means that they cannot be used."""
    stated = msgspec.convert(content, _Request, strict=True, dec_hook=decoded)
    values: dict[str, Any] = {name: getattr(stated, name) for name in content}
    reads: dict[str, Any] = {
        "alpha": lambda stated: tuple(stated) if isinstance(stated, list) else stated,
        "names": lambda stated: GroupColumns(stated) if isinstance(stated, dict) else tuple(stated),
        "population": read_population,
        "candidates": _read_candidates,
    }
    return Request(**{name: reads[name](value) if name in reads else value for name, value in values.items()})


def _read_candidates(recipe: dict[str, Any]) -> Candidates | OwnCandidates | Spread:
    if recipe["kind"] == "spread" and "size" not in recipe:
        return Spread(recipe["of"], recipe.get("unit"), recipe.get("around"), recipe.get("most"))
    if recipe["kind"] in BUILDERS:
        return Candidates.from_recipe(recipe)
    if "values" in recipe:  # of a plan, which has to state them
        return Candidates.of(recipe["values"])
    unlisted = msgspec.convert(recipe, OwnCandidates, strict=True)  # a release has only their number
    if not 1 <= unlisted.size <= MOST_CANDIDATES:
        raise ValueError
    return unlisted


def _read_threshold(terms: Terms, n: int | None, drawn: _Drawn) -> Threshold:
    """The threshold, if everything about it but its value follows from its terms and its mechanism."""
    # The candidates, and the value as one of them.
    spread = terms.spread
    candidates: Any = Candidates.quantiles(spread, drawn.candidates) if isinstance(spread, Spread) else spread
    value = math.inf if isinstance(drawn.threshold, str) else drawn.threshold
    if math.isfinite(value) and isinstance(candidates, Candidates) and value not in candidates.edges:
        raise FormatError("release.threshold", "must be one of its candidates", remedy=UNUSABLE)
    if n is not None and not 1 <= n <= MOST_RECORDS:
        raise _contradiction("n")

    # The mechanism, and the noisy number of records that it follows.
    mechanism = None if drawn.mechanism is None else read_mechanism(drawn.mechanism, terms.noise)
    if mechanism is None and not math.isinf(value):
        raise FormatError("release.threshold", "must be +inf without a mechanism", remedy=UNUSABLE)
    if (drawn.counted is None) != (terms.size_scale is None):
        raise _contradiction("counted")
    size = None if drawn.counted is None else terms.noisy_size(drawn.counted)

    # The guarantee, certified again.
    guarantee, privacy = promised(terms, n or 1, candidates.size, mechanism, size)
    if not 0 <= drawn.coverage <= 1 or abs(guarantee.coverage - drawn.coverage) > _NEAR:
        raise _contradiction("coverage")
    if mechanism is not None:
        _check_mechanism(terms, n, mechanism, guarantee.coverage)
        histogram = isinstance(mechanism, NoisyHistogram | PublishedHistogram)
        if histogram and mechanism != published_mechanism(terms, n or 1, candidates.size, size):
            raise _contradiction("mechanism")
    guarantee = replace(guarantee, coverage=drawn.coverage)

    # The threshold; that of a noisy histogram follows from its counts.
    design = Design(terms, n or 1, candidates, mechanism, guarantee, privacy, size)
    if drawn.counts is None:
        if isinstance(mechanism, NoisyHistogram):
            raise _contradiction("counts")
        return design.threshold(value)
    return _checked_counts(design, value, drawn.counts)


def _checked_counts(design: Design, value: float, counts: list[int]) -> Threshold:
    """The threshold, if it follows from these noisy counts, of which there is one for each candidate."""
    of_histogram = design.terms.mechanism == "noisy-histogram"
    if not of_histogram or len(counts) != design.candidates.size or sum(map(abs, counts)) > _MOST_COUNTED:
        raise _contradiction("counts")
    noisy = tuple(counts)
    if not isinstance(design.candidates, Candidates):  # a file has only the number of your own
        return replace(design.threshold(value), noisy_counts=noisy)
    threshold = design.counted_threshold(noisy)
    if threshold.threshold != value:
        raise _contradiction("threshold")
    return threshold


def _check_mechanism(terms: Terms, n: int | None, mechanism: Mechanism, coverage: float) -> None:
    """Reject a mechanism of another method, population, level or privacy loss than requested."""
    if mechanism.name != terms.mechanism:
        raise _contradiction("mechanism.name")
    if isinstance(mechanism, Slopes) and (mechanism.weight != terms.weight or not _aims(terms, n, mechanism, coverage)):
        raise _contradiction("mechanism")
    if terms.noise is None and not math.isinf(terms.epsilon):
        privacy = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale)
        spent = privacy.claimed or privacy.epsilon
        least = _LEAST_SPENT.get(mechanism.name, 1 - _NEAR)
        if not least * terms.epsilon <= spent <= terms.epsilon * (1 + _NEAR):
            raise _contradiction("mechanism.scale")


def _aims(terms: Terms, n: int | None, mechanism: Slopes, coverage: float) -> bool:
    # Other target ranks would belong to another level than the stated one.
    level = terms.level
    if n is not None:
        target = mechanism.target(n)
        reaches = target >= level * (n + 1) or coverage >= float(level)
        return mechanism.rate == 0 and not mechanism.head_start and not mechanism.fade and 0 < target <= n and reaches
    if terms.delta is not None:
        return mechanism.rate > level and not mechanism.head_start and not mechanism.fade
    return mechanism.rate == terms.rate


register(Release, Kind(common_form("confide/release", "release"), _content, _read_content))


# Published counts.


class _Published(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The fields of `PublishedCounts` in a file; of candidates that their recipe determines, no edges."""

    counts: list[int]
    recipe: dict[str, Any]
    edges: list[float] | None = None
    noise: Noise
    n: int | None
    score: str | None
    classes: list[str | int] | int | None = None
    epsilon: float | None = None
    n_noisy: int | None = None
    n_noise: Noise | None = None


# The fields of `PublishedCounts` that a file states as they are.
_AS_STATED = tuple(name for name in _Published.__struct_fields__ if name not in ("recipe", "edges"))


def _published_content(counts: PublishedCounts) -> dict[str, Any]:
    stated: dict[str, Any] = {name: getattr(counts, name) for name in _AS_STATED} | {"counts": counts.counts.tolist()}
    file = _Published(recipe=dict(counts.candidates.recipe), edges=counts.edges, **stated)
    content: dict[str, Any] = msgspec.to_builtins(file)
    return content


def _read_published(content: dict[str, Any]) -> PublishedCounts:
    file = msgspec.convert(content, _Published, strict=True)
    if file.edges is None:
        candidates = Candidates.from_recipe(file.recipe)
    else:
        candidates = Candidates(np.array(file.edges), file.recipe)
        if file.recipe not in [{"kind": kind, "size": candidates.size} for kind in ("of", "from_reference")]:
            raise ValueError
    stated: dict[str, Any] = {name: getattr(file, name) for name in _AS_STATED}
    return PublishedCounts(candidates=candidates, **stated)


register(PublishedCounts, Kind(common_form("confide/published-counts", "counts"), _published_content, _read_published))
