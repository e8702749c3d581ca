"""The guarantees of the example with a small language model hold over random splits."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_sets_of_options_and_filtered_claims():
    """Means over splits are nearly normal: six standard errors are exceeded less than once in a million runs."""
    command = [sys.executable, "-m", "examples.language_models", "40"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [list(map(float, line.split())) for line in done.stdout.splitlines()[4:]]
    assert [row[0] for row in rows] == [0.1, 0.5, 1.0, 4.0]
    for _, covered, error, size, wrong, spread, kept in rows:
        assert covered > 0.9 - 6 * error
        assert wrong < 0.1 + 6 * spread
        assert 1 < size < 4
        assert kept > 0.3  # keeping nothing would be valid, too
