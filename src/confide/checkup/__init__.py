"""What is installed here, what files were made with, and what is known against either; for who answers for privacy.

advisories.json   what is known against versions: each with its source
installation.py   packages, whether their files are those that were installed, which advisories concern them
stated.py         what a file states about how it was made; nothing in it is believed or run
folders.py        all files below a path; `doctor`, which joins all, and `Checkup`, what it found
"""

from confide.checkup.folders import Checkup, Found, doctor
from confide.checkup.installation import Advisory, Package, Part, advisories

__all__ = ["Advisory", "Checkup", "Found", "Package", "Part", "advisories", "doctor"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
