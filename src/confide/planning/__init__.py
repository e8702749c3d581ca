"""In comes what was asked, out goes the mechanism that answers it, and what it will promise and cost; no data.

request.py      `Request`: every public choice, checked once
plan.py          `Plan`: slopes, target rank and head start for a request, and what follows; mechanisms of others
slope_choice.py  which slopes minimise the expected excess
"""

from confide.planning.plan import Plan, make_plan, mechanism_for, plan, slopes_without_head_start
from confide.planning.request import OPTIONS, Request, check_request
from confide.planning.slope_choice import PARTS, evenly_spread_law

__all__ = [
    "OPTIONS", "PARTS", "Plan", "Request", "check_request", "evenly_spread_law", "make_plan", "mechanism_for", "plan",
    "slopes_without_head_start",
]  # fmt: skip
