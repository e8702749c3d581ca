"""What is installed here, what files were made with, and what is known against either; for who answers for privacy.

advisories.json   what is known against versions: each with its source
advisories.py     how they are read, and what they concern
installation.py   packages, whether their files are those that were installed, the sampler, optional parts
stated.py         what a file states about how it was made; nothing in it is believed or run
folders.py        all files below a path: which are ours, which are damaged
examine.py        `doctor`, which joins them, and `Checkup`, what it found
"""

from confide.checkup.advisories import Advisory, advisories
from confide.checkup.examine import Checkup, doctor
from confide.checkup.folders import Found
from confide.checkup.installation import Package, Part

__all__ = ["Advisory", "Checkup", "Found", "Package", "Part", "advisories", "doctor"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
