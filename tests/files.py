"""Tables for tests, written in every format that is read; documents in files of JSON."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from confide import Release

NAMES = ("cat", "dog", "emu")


def write(path: Path, columns: dict[str, Any] | pa.Table) -> Path:
    """Write a table in the format of the extension."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    match path.suffix:
        case ".parquet" | ".pq":
            pa.parquet.write_table(table, path)
        case ".csv" | ".tsv":
            options = pa.csv.WriteOptions(delimiter="," if path.suffix == ".csv" else "\t")
            pa.csv.write_csv(table, path, options)
        case ".feather":
            pa.feather.write_feather(table, path, compression="lz4")
        case _:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
    return path


def read(path: Path) -> pa.Table:
    """Read a table back, without the code under test."""
    match path.suffix:
        case ".parquet":
            return pa.parquet.read_table(path)
        case ".csv" | ".tsv":
            options = pa.csv.ParseOptions(delimiter="," if path.suffix == ".csv" else "\t", newlines_in_values=True)
            return pa.csv.read_csv(path, parse_options=options)
        case _:
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).read_all()


def in_order_of(table: pa.Table, name: str) -> pa.Table:
    """The rows in the order of a column of numbers, which are texts if they come from CSV."""
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, table[name].cast(pa.float64())).sort_by(name)


def classified(n: int = 3000, seed: int = 0, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of three classes, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), n)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    return p.astype(dtype), y


def class_table(n: int = 3000, seed: int = 0, dtype: Any = np.float32, *, lists: bool = True) -> pa.Table:
    """A table of records: id, text, p_cat/p_dog/p_emu, the same as a list, labels as positions and as names."""
    p, y = classified(n, seed, dtype)
    columns: dict[str, Any] = {"id": np.arange(n), "text": [f'note {i}, "quoted"' for i in range(n)]}
    columns |= {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    if lists:
        columns["p"] = pa.array(list(p))
    return pa.table(columns | {"label": y, "name": np.array(NAMES)[y]})


def signed(content: dict[str, Any]) -> str:
    """A document's JSON with a fresh checksum: what someone who knows the format can write."""
    body = {key: value for key, value in content.items() if key != "sha256"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps({**body, "sha256": hashlib.sha256(canonical.encode()).hexdigest()})


def resealed(released: Release, place: str, change: dict[str, Any]) -> str:
    """The file of a single threshold with a change of its request, threshold, mechanism or itself, newly signed."""
    content = json.loads(released.to_json())
    (drawn,) = content["thresholds"]
    places = {"request": content["request"], "threshold": drawn, "mechanism": drawn["mechanism"], "file": content}
    places[place] |= change
    return signed(content)


def documents(value: Any) -> Iterator[dict[str, Any]]:
    """All documents that state their kind, also those inside others and in texts."""
    if isinstance(value, dict):
        if str(value.get("kind", "")).startswith("confide/") or "payloadType" in value:
            yield value
        for one in value.values():
            yield from documents(one)
    elif isinstance(value, list):
        for one in value:
            yield from documents(one)
    elif isinstance(value, str) and value.startswith("{"):
        try:
            inner = json.loads(value)
        except ValueError:
            return  # a text for people, or damaged on purpose
        yield from documents(inner)
