"""The whole way on real data: train, calibrate privately, predict sets, and say what was promised and what it cost."""

from confide.demo.steps import run

__all__ = ["run"]
