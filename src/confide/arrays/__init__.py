"""What people hand in (numpy, pandas, polars, Arrow) -> checked numpy arrays, read in blocks on a few threads."""
