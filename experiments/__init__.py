"""The experiments of Private Prediction Sets with its methods and ours side by side. Run `python -m experiments`."""
