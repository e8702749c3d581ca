"""What every `candidates=` takes; `confide.scores.ScoreKind.asked` is its one reader."""

from typing import TypeAlias

from confide.candidates.lists import Candidates
from confide.candidates.spread import Spread

AnyCandidates: TypeAlias = Candidates | Spread | int | None
"""A list; how one is spread; how many there are, +inf included; or None for what suits the score."""
