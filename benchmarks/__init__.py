"""Speed and memory, measured next to a yardstick in the same run."""
