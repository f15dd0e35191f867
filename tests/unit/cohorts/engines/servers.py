"""A PostgreSQL server for tests: its own cluster in a temporary folder, loopback socket only."""

import contextlib
import gzip
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etips.cohorts.databases import LAYOUTS
from etips.cohorts.engines.tablefiles import TableFile, find

_SQL = {
    "int64": "bigint", "string": "text", "code": "text", "float64": "double precision",
    "timestamp": "timestamp(0)",
}  # fmt: skip


def postgres_programs() -> Path | None:
    """Folder with initdb and pg_ctl, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextlib.contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """Run a server; yields `postgresql://...` without a schema."""
    with tempfile.TemporaryDirectory(prefix="etips-pg-") as folder:
        user, as_user = "postgres", []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
            as_user = ["runuser", "-u", "postgres", "--"]
        else:
            user = "etips"
        data = f"{folder}/data"
        init = [*as_user, str(programs / "initdb"), "-D", data, "-U", user, "-A", "trust", "-N"]
        control = [*as_user, str(programs / "pg_ctl"), "-D", data, "-w"]
        options = f"-k {folder} -h '' -F"
        run = {"check": True, "capture_output": True, "cwd": folder}
        subprocess.run(init, **run)
        subprocess.run([*control, "-o", options, "-l", f"{folder}/log", "start"], **run)
        try:
            yield f"postgresql://{user}@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)


def load_postgres(
    address: str,
    folder: Path,
    types: dict[str, dict[str, str]],
    schema: str | Mapping[str, str],
) -> None:
    """Copy the needed CSV tables of a folder into a schema, or into one for each table."""
    import psycopg  # optional

    schemas = dict.fromkeys(types, schema) if isinstance(schema, str) else schema
    with psycopg.connect(address, autocommit=True) as connection:
        for name in sorted(set(schemas.values())):
            connection.execute(f"CREATE SCHEMA {name}")
        for name, file in find(folder, LAYOUTS).items():
            if name in types:
                _load(connection, f"{schemas[name]}.{name}", file, types[name])


def _load(connection: Any, table: str, file: TableFile, types: dict[str, str]) -> None:
    columns = ", ".join(f'"{c}" {_SQL[types.get(c, "string")]}' for c in file.columns)
    connection.execute(f"CREATE TABLE {table} ({columns})")
    opener = gzip.open if file.path.endswith(".gz") else open
    copying = f"COPY {table} FROM STDIN (FORMAT csv, HEADER)"
    with (
        connection.cursor() as cursor,
        opener(file.path, "rb") as rows,
        cursor.copy(copying) as copy,
    ):
        while block := rows.read(2**20):
            copy.write(block)
