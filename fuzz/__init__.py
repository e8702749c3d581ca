"""Coverage-guided fuzzing of every parser of outside data: `nox -s fuzz`. docs/bad-input.md lists its findings."""
