"""DuckDB, Ibis and pyarrow, each imported when one of its names is first used: many programs need none of them."""

from importlib import import_module
from typing import Any


class _Deferred:
    """Stands for a module, which is imported when a name in it is looked up."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # looked up in any object that is copied or sent to an executor
            raise AttributeError(name)
        return getattr(import_module(self._module), name)


duckdb: Any = _Deferred("duckdb")
ibis: Any = _Deferred("ibis")
pa: Any = _Deferred("pyarrow")
pc: Any = _Deferred("pyarrow.compute")
