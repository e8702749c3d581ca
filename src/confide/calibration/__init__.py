"""Scores or counts -> releases: the calls that join candidates, counts, plan, ledger and mechanism."""
