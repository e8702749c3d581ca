"""Files of noisy counts that another engine made."""

import json
from collections.abc import Sequence
from typing import Any

from confide.candidates import Candidates
from confide.core import PublishedCounts
from confide.errors import FormatError, InputError
from confide.mechanisms import Noise
from confide.support import FileLocation, as_place
from confide.tables.counts_file import bytes_of, rows_of, text_of, whole

_COLUMNS = ("bin", "count")


def read_published_counts(
    file: str | FileLocation,
    candidates: Candidates | None = None,
    noise: Noise | None = None,
    *,
    n: int | None = None,
    n_noisy: int | None = None,
    n_noise: Noise | None = None,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
) -> PublishedCounts:
    r"""Read noisy counts that another engine made.

    Parameters
    ----------
    file
        A file of `PublishedCounts.save`, which states everything. Or a CSV, JSON or Parquet file with the columns bin
        (from 0) and count, such as Tumult and OpenDP make; a JSON list of counts in the order of the bins; or a JSON
        object with the report_count and the aggregate_result of a collection of DAP.
    candidates, noise, n, n_noisy, n_noise, score, classes
        As in `PublishedCounts`; left out for its own files.

    Raises
    ------
    InputError, InputTypeError
        If the file or an argument cannot be used.
    FormatError
        If the file does not contain counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "counts.csv")
    ...     written = path.write_text("bin,count\n1,-2\n0,30\n")
    ...     read_published_counts(path, Candidates.of([0.5]), Noise.discrete_laplace(2.0), n=29).counts
    array([30, -2])
    """
    place = as_place(file)
    stated: dict[str, Any] = {"n": n, "n_noisy": n_noisy, "n_noise": n_noise, "score": score, "classes": classes}
    content: Any = None
    if place.suffix.lower() == ".json":
        try:
            content = json.loads(text_of(bytes_of(place)))
        except (ValueError, RecursionError):
            raise FormatError("counts", f"{str(place)!r} must be one valid JSON document") from None
    if isinstance(content, dict) and content.get("kind") == "confide/published-counts":
        given = {"candidates": candidates, "noise": noise, **stated}
        if known := [name for name, value in given.items() if value is not None]:
            raise InputError(known[0], f"must be left out: {str(place)!r} states it")
        return PublishedCounts.load(place)  # type: ignore[arg-type]
    if candidates is None or noise is None:
        name = "candidates" if candidates is None else "noise"
        raise InputError(name, f"must be given: {str(place)!r} does not state it")
    if content is None or (isinstance(content, list) and any(isinstance(entry, dict) for entry in content)):
        rows = list(enumerate(rows_of(place, _COLUMNS)))
        content = {name: [whole(row[name], f"counts[{k}].{name}", "") for k, row in rows] for name in _COLUMNS}
    return PublishedCounts(content, candidates, noise, **stated)
