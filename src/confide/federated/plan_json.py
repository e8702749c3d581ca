"""Plans as JSON values, schema 1. What a plan says is not trusted: every field is checked, and so is their fit."""

from collections.abc import Mapping
from typing import Any

from confide.candidates import BUILDERS, Candidates
from confide.federated.clock import read_time, write_time
from confide.federated.envelope import fields_of
from confide.federated.keys import Silo
from confide.federated.protocols import METHODS, PROTOCOLS, FederatedProtocol
from confide.federated.protocols.plan_fields import VOID, read_unused
from confide.federated.refusals import Refusal
from confide.federated.terms import MISSING, POPULATIONS, Terms
from confide.scores import score_kind
from confide.support import Fields, exact_level, one_of, privacy_loss

Unused = tuple[tuple[str, Any], ...]

_ORDER = (
    *("method", "alpha", "delta", "epsilon", "score", "candidates", "silos", "targets", "rate", "left", "right"),
    *("scale", "selector", "liars", "dropouts", "missing", "population", "colluding", "bits", "n_min", "n_typical"),
    *("published_k", "session", "closes"),
)


def plan_fields(terms: Terms, protocol: FederatedProtocol, unused: Unused) -> dict[str, Any]:
    """As JSON values: one flat object, with a value for the fields that the protocol does not have."""
    return {
        **dict.fromkeys(_ORDER),
        **VOID,
        **dict(unused),
        **protocol.fields(),
        "method": protocol.method,
        "alpha": str(terms.alpha),
        "delta": terms.delta,
        "epsilon": terms.epsilon,
        "score": terms.score,
        "candidates": candidate_fields(terms.candidates),
        "silos": [silo.fields() for silo in terms.silos],
        "liars": terms.liars,
        "dropouts": terms.dropouts,
        "missing": terms.missing,
        "population": terms.population,
        "session": terms.session,
        "closes": terms.closes,
    }


def read_plan_fields(content: Mapping[str, Any]) -> tuple[Terms, FederatedProtocol, Unused]:
    """The inverse of `plan_fields`.

    Raises
    ------
    Refusal
        `malformed`.
    """
    with fields_of("plan", content) as fields:
        method = PROTOCOLS[one_of("method", fields.take("method", str), METHODS)]
        terms = _read_terms(fields)
        method.check(terms)
        protocol = method.read(fields, terms)
        unused = read_unused(fields, terms)
    losses = [protocol.loss(terms, i) for i in range(len(terms.silos))] if protocol.private else []
    if max(losses, default=0.0) > (terms.epsilon or 0.0):
        raise Refusal("malformed", "the plan claims a smaller privacy loss than its mechanisms have")
    return terms, protocol, unused


def _read_terms(fields: Fields) -> Terms:
    silos = fields.take("silos", list)
    return Terms(
        alpha=exact_level("alpha", fields.take("alpha", str)),
        delta=fields.optional("delta", (float,), lambda value: float(exact_level("delta", value))),
        epsilon=fields.optional("epsilon", (float, int), lambda value: privacy_loss("epsilon", value)),
        score=fields.optional("score", (str,), lambda name: score_kind(name).name),
        candidates=read_candidates(fields.take("candidates", dict)),
        silos=tuple(Silo.of(silo if isinstance(silo, dict) else {}) for silo in silos),
        liars=fields.take("liars", int),
        dropouts=fields.take("dropouts", int),
        missing=one_of("missing", fields.take("missing", str), MISSING),
        population=one_of("population", fields.take("population", str), POPULATIONS),
        session=fields.take("session", str),
        closes=fields.optional("closes", (str,), lambda text: write_time(read_time(text))),
    )


def candidate_fields(candidates: Candidates) -> dict[str, Any]:
    """How the candidates were made; their values where a recipe does not tell them."""
    recipe = dict(candidates.recipe)
    return recipe if recipe["kind"] in BUILDERS else {"kind": "of", "values": candidates.edges.tolist()}


def read_candidates(fields: Mapping[str, Any]) -> Candidates:
    """The inverse of `candidate_fields`."""
    options = {name: value for name, value in fields.items() if name != "kind"}
    kind = fields.get("kind")
    if kind not in (*BUILDERS, "of"):
        raise Refusal("malformed", "the plan names candidates of an unknown kind")
    try:
        made: Candidates = getattr(Candidates, kind)(**options)
    except TypeError:
        raise Refusal("malformed", "the plan describes its candidates wrongly") from None
    return made
