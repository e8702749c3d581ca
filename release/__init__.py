"""What goes with a release: the bill of materials (`sbom.py`), from what packages say of themselves (`packages.py`)."""
