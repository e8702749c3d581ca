from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

import confide
from tests.files import classified
from tests.tables.engines import EMBEDDED, Spark, engines


@pytest.fixture(scope="session")
def calibration() -> confide.Release:
    """A calibration of LAC scores with a finite threshold."""
    scores = confide.lac_score(*classified(5000))
    return confide.calibrate(scores, 0.1, 10.0, score="lac")


@pytest.fixture(params=engines())
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Every source of a table: files, folders, data in memory, databases, a Spark cluster."""
    if request.param == "spark":
        yield Spark(request.getfixturevalue("spark"), tmp_path_factory.mktemp("spark"))
    elif request.param == "postgres":
        yield request.getfixturevalue("reader")
    else:
        made = EMBEDDED[request.param]
        missing = [module for module in made.needs if find_spec(module) is None]
        if missing:
            pytest.skip(f"needs the package {', '.join(missing)}")
        yield made(tmp_path_factory.mktemp(request.param))


@pytest.fixture
def listing(engine: Any) -> Any:
    """The sources with columns of lists."""
    if not engine.lists:
        pytest.skip("has no columns of lists")
    return engine


@pytest.fixture
def ranking(engine: Any) -> Any:
    """The sources that can number the records of each person."""
    if not engine.ranks:
        pytest.skip("cannot number the records of each person")
    return engine
