"""One-shot private calibration across hospitals."""
