"""Counts over public candidates to the index of one candidate: each file one mechanism with its privacy map.

`slopes` is the mechanism of this project; the others carry the names of the methods they reproduce, so that their
price can be compared on the same data (docs/methods.md).
"""
