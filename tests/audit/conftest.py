"""Seeded mechanisms of the audit's tests."""

import numpy as np
import pytest

from tests.audit import others, unseen


@pytest.fixture
def seeded(monkeypatch):
    """The broken mechanisms and the audit draw the same numbers in every run: a test cannot fail by chance."""
    generator = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=1: generator(seed))
    monkeypatch.setattr(others, "_RNG", generator(2))
    monkeypatch.setattr(unseen, "RNG", generator(3))
    for mechanism in vars(others).values():
        if hasattr(mechanism, "rng"):
            monkeypatch.setattr(mechanism, "rng", generator(4))
