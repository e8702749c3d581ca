"""A folder comes in; the files of the whole way on real data and its story leave: train, calibrate, predict, report.

digits.py  the data and a model
steps.py   what is done with them, and what is printed
"""

from confide.demo.steps import run

__all__ = ["run"]
