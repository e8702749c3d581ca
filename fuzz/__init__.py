"""Coverage-guided fuzzing of every parser of outside data: `make fuzz`. docs/bad-input.md tells what it found."""
