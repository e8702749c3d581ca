import pytest

import confide
from tests.files import classified


@pytest.fixture(scope="session")
def calibration() -> confide.Calibration:
    """A calibration of LAC scores with a finite threshold."""
    scores = confide.lac_score(*classified(5000))
    return confide.calibrate(scores, 0.1, 10.0, score="lac")
