from collections.abc import Callable

import pytest

from confide.cli import main


def pytest_itemcollected(item: pytest.Item) -> None:
    """Few silos draw +inf by chance now and then: its warning is no failure unless a test asks for it."""
    item.add_marker(pytest.mark.filterwarnings("ignore:the threshold:confide.CoverageWarning"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command and return its output; for an exit code other than 0 return its errors (`run.err`).

    None allows any other code.
    """

    def run(*words: object, code: int | None = 0) -> str:
        capsys.readouterr()
        found = main([str(word) for word in words])
        done = capsys.readouterr()
        run.err = done.err
        assert found == code or (code is None and found != 0), done.err
        return done.out if code == 0 else done.err

    return run
