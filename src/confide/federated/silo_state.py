"""What a silo remembers: plans answered, sessions used, privacy spent. Durable, and written before anything leaves.

`SiloLedger` is the interface that `answer` needs; `SiloState` keeps it in one SQLite file. A plan is charged and
committed before the data are touched, and its message is stored before it is handed out. So a second request gets the
first message again, and a silo that was interrupted in between has spent its budget rather than answered twice.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from confide.errors import InputError
from confide.federated.refusals import Refusal


class SiloLedger(Protocol):
    """Where a silo charges its answers."""

    def earlier(self, plan: str) -> str | None:
        """The message that answered this plan before, or None."""
        ...

    def begin(self, plan: str, session: str, epsilon: float, budget: float) -> str | None:
        """Charge a plan, or return the message that answered it before; refuse what the budget does not allow."""
        ...

    def finish(self, plan: str, message: str) -> None:
        """Store the message before it leaves."""
        ...


class SiloState:
    """A silo's memory in one SQLite file.

    Parameters
    ----------
    path
        The file; made if it does not exist. Keep one per data set, on a disk of the silo.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = SiloState(Path(folder) / "state.db")
    ...     first = state.begin("plan a", "session a", 1.0, budget=1.5)
    ...     state.finish("plan a", "the answer")
    ...     again = state.begin("plan a", "session a", 1.0, budget=1.5)
    >>> first, again
    (None, 'the answer')
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._open() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (plan TEXT PRIMARY KEY, session TEXT UNIQUE NOT NULL, "
                "epsilon TEXT NOT NULL, charged TEXT NOT NULL, message TEXT)"
            )

    def earlier(self, plan: str) -> str | None:
        """The stored message that answered this plan, or None."""
        with self._open() as database:
            found = database.execute("SELECT message FROM answers WHERE plan = ?", (plan,)).fetchone()
        return None if found is None or found[0] is None else str(found[0])

    def begin(self, plan: str, session: str, epsilon: float, budget: float) -> str | None:
        """Charge `epsilon` for this plan, durably; return the stored message if it was answered before.

        Raises
        ------
        Refusal
            `budget-spent`, `session-used` or `interrupted`.
        """
        with self._open() as database:
            earlier = database.execute("SELECT message FROM answers WHERE plan = ?", (plan,)).fetchone()
            if earlier is not None:
                if earlier[0] is None:
                    raise Refusal("interrupted")
                return str(earlier[0])
            if database.execute("SELECT 1 FROM answers WHERE session = ?", (session,)).fetchone():
                raise Refusal("session-used")
            if self._spent(database) + Fraction(epsilon) > Fraction(budget):
                raise Refusal("budget-spent", "the silo's privacy budget does not suffice for this plan")
            now = datetime.now(UTC).isoformat(timespec="seconds")
            row = (plan, session, str(Fraction(epsilon)), now)
            database.execute("INSERT INTO answers VALUES (?, ?, ?, ?, NULL)", row)
        return None

    def finish(self, plan: str, message: str) -> None:
        """Store the message of a charged plan."""
        with self._open() as database:
            database.execute("UPDATE answers SET message = ? WHERE plan = ? AND message IS NULL", (message, plan))

    @property
    def spent(self) -> float:
        """The sum of all losses charged so far."""
        with self._open() as database:
            return float(self._spent(database))

    @staticmethod
    def _spent(database: sqlite3.Connection) -> Fraction:
        return sum((Fraction(row[0]) for row in database.execute("SELECT epsilon FROM answers")), Fraction(0))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        except sqlite3.Error:
            raise InputError(f"state file {str(self.path)!r} cannot be opened; check folder and rights") from None
        try:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")  # one answer at a time, across processes
            yield database
            database.execute("COMMIT")
        except sqlite3.DatabaseError:
            raise InputError(f"state file {str(self.path)!r} is damaged, locked or no state file; restore it") from None
        finally:
            database.close()  # an open transaction is rolled back
