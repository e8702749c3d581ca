"""The program of the sharp certificate (docs/theory.md, section 4), by an iteration without library code."""

import numpy as np


def climbed(x, slope, rivals, competitor=1.0, gap=1e-4):
    """The value of a spread, by multiplicative steps from an even one, and an upper bound on all spreads by duality."""
    w = np.exp(-slope * np.maximum(np.arange(int(30 / slope) + 5) + x - 1, 0))
    points = np.where(np.arange(len(w)) == 0, competitor, 1.0)
    spread = np.full(len(w), rivals / len(w))
    while True:
        ahead = np.cumsum((spread * w)[::-1])[::-1]
        gradient = w * np.cumsum(points / (1 + ahead) ** 2)
        slack = rivals * gradient.max() - gradient @ spread
        if slack <= gap:
            value = 1 - competitor + float(points @ (ahead / (1 + ahead)))
            return value, value + float(slack)
        spread = spread * gradient * (rivals / (gradient @ spread))
