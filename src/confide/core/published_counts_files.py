"""Noisy counts that another engine made, as files."""

from typing import Any

import msgspec
import numpy as np

from confide.candidates import Candidates
from confide.core.documents import Kind, common_form, register
from confide.core.published_counts import PublishedCounts
from confide.mechanisms import Noise


class _Published(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The fields of `PublishedCounts` in a file; of a list that its recipe determines, no edges."""

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


_AS_STATED = ("noise", "n", "score", "epsilon", "n_noisy", "n_noise", "classes", "counts")


def _published_content(counts: PublishedCounts) -> dict[str, Any]:
    stated: dict[str, Any] = {name: getattr(counts, name) for name in _AS_STATED}
    classes = list(counts.classes) if isinstance(counts.classes, tuple) else counts.classes
    stated |= {"counts": counts.counts.tolist(), "classes": classes}
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
