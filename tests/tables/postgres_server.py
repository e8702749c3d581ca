"""A PostgreSQL server for the tests: a temporary data directory, loopback only, stopped at the end."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

OWNER, READER = "owner", "reader"
PASSWORD = "not-for-any-log-3141592653"  # noqa: S105


@dataclass(frozen=True)
class Server:
    port: int

    def url(self, role: str) -> str:
        return f"postgresql://{role}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def address(self, role: str) -> str:
        """The address without the password, for command lines; the environment has it as PGPASSWORD."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/postgres"


def binaries() -> Path | None:
    """The folder of initdb and postgres: on the path, or Debian's folder."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next((p for p in [*([Path(found).parent] if found else []), *places] if (p / "postgres").exists()), None)


def needs_postgres() -> None:
    """Skip a test if there is no server to start, or no client."""
    if find_spec("psycopg") is None or find_spec("pandas") is None:
        pytest.skip("needs the extra 'postgres'")
    if binaries() is None:
        pytest.skip("needs a PostgreSQL server's programs (Debian: apt-get install postgresql)")


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, with an owner and a role that may only read."""
    programs = binaries()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="confide-postgres-", dir="/tmp"))
    user = _harmless_user()
    options = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    if user:
        shutil.chown(folder, user)
    password = folder / "password"
    password.write_text(PASSWORD)
    if user:
        shutil.chown(password, user)
    data = folder / "data"

    def run(*command: str | Path, **more: object) -> None:
        subprocess.run([str(part) for part in command], check=True, capture_output=True, cwd=folder, **options, **more)

    try:
        run(programs / "initdb", "-D", data, "-U", OWNER, "-A", "scram-sha-256", f"--pwfile={password}", "--no-sync")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={folder}"
        run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
        try:
            server = Server(port)
            _make_reader(server)
            yield server
        finally:
            run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _harmless_user() -> str | None:
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"  # codespell:ignore nobody


def _make_reader(server: Server) -> None:
    import psycopg

    with psycopg.connect(server.url(OWNER), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {READER}")
