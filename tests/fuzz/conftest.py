from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder_for_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder, in which only named files may appear; the folder above stays empty."""
    inside = tmp_path / "outer" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    yield inside
    assert [path.name for path in (tmp_path / "outer").iterdir()] == ["inside"]
