"""In comes what was asked, out goes the mechanism that answers it, and what it will promise and cost; no data.

request.py           `Request`: every public choice, checked once
plan.py              `Plan`: slopes, target rank and head start for a request, and what follows from them
slope_choice.py      which slopes minimise the expected excess
mechanism_choice.py  the mechanism for any request, of this project or published by others
"""
