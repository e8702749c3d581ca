"""Tab completion shows exactly the public names in every public package."""

import importlib
import inspect
import types
from pathlib import Path

import pytest

import confide
from confide.errors import MissingExtraError
from tests.surface.python import promised_modules


def modules_with_a_list():
    """Public modules that define what `dir` shows."""
    places = {name: Path(confide.__file__).parents[1].joinpath(*name.split(".")) for name in promised_modules()[1:]}
    files = {name: one / "__init__.py" if one.is_dir() else one.with_suffix(".py") for name, one in places.items()}
    return [name for name, file in files.items() if "\ndef __dir__(" in file.read_text(encoding="utf-8")]


def test_most_modules_have_a_list():
    assert len(modules_with_a_list()) >= 19


@pytest.mark.parametrize("name", modules_with_a_list())
def test_a_module_shows_what_it_exports(name):
    try:
        module = importlib.import_module(name)
    except (ModuleNotFoundError, MissingExtraError) as missing:
        pytest.skip(f"not installed here: {missing}")
    listed = dir(module)
    assert listed == sorted(set(module.__all__))
    assert not [one for one in listed if one.startswith("_")]
    modules = [value for one in listed if isinstance(value := getattr(module, one), types.ModuleType)]
    assert all(value.__name__.startswith(f"{module.__name__}.") for value in modules)


def test_the_roof_shows_what_users_call():
    assert dir(confide) == sorted([*confide.__all__, "__version__"])


def test_signatures_are_short():
    """The signature in a notebook: names of types, not their definitions."""
    functions = {name: getattr(confide, name) for name in confide.__all__ if inspect.isfunction(getattr(confide, name))}
    shown = {name: str(inspect.signature(function)) for name, function in functions.items()}
    assert not [name for name, text in shown.items() if "_typing" in text or "NestedSequence" in text]
    assert len(shown["lac_score"]) < 200
