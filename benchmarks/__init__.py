"""Speed and memory, compared with a reference in the same run."""
