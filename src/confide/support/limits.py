"""How much of everything there may be: public bounds that arguments and files are held to."""

MOST_RECORDS = 2**48
"""Calibration records."""

MOST_CANDIDATES = 2**20
"""Candidate thresholds, +inf included."""

MOST_PER_PERSON = 10**6
"""Records of one person."""

LEAST_LOSS, MOST_LOSS = 1e-6, 1e6
"""A privacy loss: less is no information at all, more is no privacy at all."""
