"""Apply a mutant to imported functions: their code is replaced for all references."""

import gc
import inspect
from collections import defaultdict
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType

Place = tuple[str, int]  # a function's qualified name, and its first line


class Functions:
    """The functions of some files in memory, and the caches of this package."""

    def __init__(self, files: set[Path]):
        self._found: defaultdict[tuple[str, Place], list[FunctionType]] = defaultdict(list)
        self._caches: list[_lru_cache_wrapper[object]] = []
        names = {str(file) for file in files}
        for function in gc.get_objects():
            if type(function) is FunctionType and function.__code__.co_filename in names:
                self._found[function.__code__.co_filename, _place(function.__code__)].append(function)
            elif type(function) is _lru_cache_wrapper and str(function.__module__).startswith("confide."):
                self._caches.append(function)

    def forget(self) -> None:
        """Clear caches filled while tests were collected, because they hide a mutant."""
        for function in self._caches:
            function.cache_clear()

    def changes(self, file: Path, right: str, mutated: str) -> list[tuple[FunctionType, CodeType]] | None:
        """The functions that a mutant changes with their new code; None if it changes more than functions."""
        pairs = list(_changed(compile(right, str(file), "exec"), compile(mutated, str(file), "exec")))
        found = [self._found.get((str(file), _place(old)), []) for old, _ in pairs]
        if not all(found) or any(old.co_name == "<module>" for old, _ in pairs):
            return None
        return [(function, new) for (_, new), functions in zip(pairs, found, strict=True) for function in functions]


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The outermost functions that differ; the module, if code that runs at import differs."""
    if old.co_flags & _IS_FUNCTION:
        if old != new:
            yield old, new
        return
    inner = list(zip_longest(_codes(old), _codes(new)))
    if _own(old) != _own(new) or any(one is None or other is None for one, other in inner):
        yield old.replace(co_name="<module>"), new
        return
    for one, other in inner:
        yield from _changed(one, other)


_IS_FUNCTION = inspect.CO_OPTIMIZED  # neither a module nor the body of a class is one


def _codes(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """The code of a module or a class itself."""
    consts = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, consts
