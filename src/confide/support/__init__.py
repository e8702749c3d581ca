"""Exact numbers, checks of arguments, files, strict JSON, extras: what every room needs and nobody comes to see."""
