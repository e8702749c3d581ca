"""What leaves: a calibration and its kin, their JSON, and one reader for all kinds."""
