"""Counts over public candidates to the index of one candidate: each file one mechanism with its privacy map."""
