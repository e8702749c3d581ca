"""`confide federated`: calibration across silos by files."""
