"""What is installed here, what files were made with, and what is known against either; for who answers for privacy.

advisories.json   what is known against versions: each with its source
installation.py   packages, whether their files are those that were installed, which advisories concern them
folders.py        files below a path, what they state of their making; `doctor`, which joins all, and `Checkup`
"""

from confide.checkup.folders import Checkup, Found, doctor
from confide.checkup.installation import Advisory, Package, Part, advisories

__all__ = ["Advisory", "Checkup", "Found", "Package", "Part", "advisories", "doctor"]


def __dir__() -> list[str]:
    return sorted(__all__)
