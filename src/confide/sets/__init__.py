"""Releases and model outputs -> prediction sets and intervals."""
