"""Check the installation and files for known defects, for people who are responsible for privacy.

advisories.json   known defects of versions, each with its source
installation.py   packages, hashes of their files, and advisories that affect them
folders.py        files below a path and the versions that made them; `doctor`, which joins both, and `Checkup`
"""

from confide.checkup.folders import CheckedFile, Checkup, doctor
from confide.checkup.installation import Advisory, Package, Part, advisories

__all__ = ["Advisory", "CheckedFile", "Checkup", "Package", "Part", "advisories", "doctor"]


def __dir__() -> list[str]:
    return sorted(__all__)
