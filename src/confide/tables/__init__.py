"""Files to counts, and prediction sets to files, in a stream: memory does not grow with the file.

Parquet and CSV are read by an embedded DuckDB, Arrow and Feather files through DuckDB over memory-mapped Arrow batches.
DuckDB and pyarrow are imported when a file is opened, not before. Texts of their errors may quote records and are
never passed on.
"""
