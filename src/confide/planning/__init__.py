"""In comes what was asked, out goes the mechanism that answers it, and what it will promise and cost; no data.

request.py           `Request`: every public choice, checked once
plan.py              `Plan`: slopes, target rank and head start for a request, and what follows from them
slope_choice.py      which slopes minimise the expected excess
mechanism_choice.py  the mechanism for any request, of this project or published by others
"""

from confide.planning.mechanism_choice import mechanism_for
from confide.planning.plan import Plan, make_plan, plan, slopes_without_head_start
from confide.planning.request import Request, check_request
from confide.planning.slope_choice import PARTS, evenly_spread_law

__all__ = [
    "PARTS",
    "Plan",
    "Request",
    "check_request",
    "evenly_spread_law",
    "make_plan",
    "mechanism_for",
    "plan",
    "slopes_without_head_start",
]
