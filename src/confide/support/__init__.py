"""What every room needs and nobody comes to see: in come values and texts, out go exact numbers, or a clear refusal.

checks.py       scalar arguments, each returned or refused
limits.py       how much of everything there may be
names.py        the one rule for names of classes and groups
rationals.py    levels as exact fractions, floats rounded to a side
strict_json.py  the one reader of JSON: texts to objects, objects field by field
files.py        files written whole or not at all
extras.py       optional packages
"""
