"""What people hand in (numpy, torch, pandas, polars, Arrow) comes in; checked numpy arrays go out, read in blocks.

checked.py   the door: numbers, vectors, probabilities, labels and groups as arrays
blocks.py    rows in blocks that fit in cache, on a few threads
loops.py     loops for which numpy needs several passes
compiled.py  the same as machine code, where Numba is installed
"""
