"""The experiments of Private Prediction Sets with its methods and ours. Run `python -m experiments`."""
