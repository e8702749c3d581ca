"""Write the vectors of formulas: `python -m tests.vectors.make`. A changed file is a breaking change for ports.

The other subjects are fixed; the reader in JavaScript computes their answers again.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.vectors import guarantees, mechanisms, noise

VECTORS = Path(__file__).parents[2] / "vectors"
VERSION = 1
"""Version of all vectors: increases when an expected value changes, not when cases are added."""

CASES: dict[str, tuple[Any, Callable[[], list[dict[str, Any]]]]] = {
    "plans": (mechanisms, mechanisms.plans),
    "utilities": (mechanisms, mechanisms.utility_cases),
    "laws": (mechanisms, mechanisms.laws),
    "losses": (mechanisms, mechanisms.losses),
    "certificates": (guarantees, guarantees.cases),
    "noise": (noise, noise.noise),
    "evaluations": (noise, noise.evaluations),
    "watches": (noise, noise.watches),
}
"""The subjects that are rewritten: their modules, and the functions that make their cases."""


def text(name: str) -> str:
    """One file: an object with one case per line."""
    module, cases = CASES[name]
    about, arithmetic = (one[name] if isinstance(one, dict) else one for one in (module.ABOUT, module.ARITHMETIC))
    head = {"subject": name, "version": VERSION, "about": about, "arithmetic": arithmetic}
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in head.items()]
    body = ",\n".join("  " + json.dumps(one, ensure_ascii=False, allow_nan=False) for one in cases())
    return "\n".join(["{", *lines, ' "cases": [', body, " ]", "}"]) + "\n"


if __name__ == "__main__":
    for name in CASES:
        written = text(name)
        (VECTORS / f"{name}.json").write_text(written, encoding="utf-8")
        print(name, written.count("\n  {"))
