"""Rules written as an expression of SQL, which DuckDB works out and nothing else can come in by."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from etips.data.intake.last_rows import last_rows, visible_columns
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.policies.written_rules import WrittenRule, unknown_column

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_SECONDS = 120.0
MOST_MEMORY = "2GB"
LONGEST = 100_000  # characters of an expression
_ROW = "row of the decision"  # no column of a table that DuckDB is given is called so
_PARTS = {
    *("CASE", "COMPARISON", "CONJUNCTION", "CONSTANT", "BETWEEN"),
    *("COLUMN_REF", "FUNCTION", "OPERATOR", "CAST", "TYPE"),
}
"""What an expression of one row is made of; not subqueries, windows, stars or parameters."""

_MACROS = {"if", "ifnull", "nullif"}
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": MOST_MEMORY,
    "temp_directory": "",
    "threads": "1",
}
"""No file, no network, no extension, no variable of ours; some memory."""


@dataclass(frozen=True, eq=False)
class SqlRule(WrittenRule):
    """A rule as an SQL expression over the columns of the table, mostly `case when ... end`.

    It gives the name or the number of an action, true or false where there are two, or null to
    leave it to the clinicians. A comparison with what is not known is neither true nor false, so it
    goes to `else`.

    Args:
        name: What results call it.
        expression: Of one row, the last that a decision sees.
    """

    name: str
    expression: str

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingError("rule", "must have a name: NAME=EXPRESSION")
        if not self.expression.strip() or len(self.expression) > LONGEST:
            raise SettingError(self._where, f"must be an expression of 1 to {LONGEST} characters")

    @property
    def text(self) -> str:
        """What it says, for the record."""
        return " ".join(self.expression.split())

    def ask(self, data: Trajectories) -> ArrayLike:
        """Its answer to every decision, in its own words."""
        with _closed() as connection:
            asked = self._asked(connection, data.schema)
            rows = last_rows(data, asked.values())
            table = rows.rename_columns(list(asked))
            self._bind(connection, table.slice(0, 0))
            return self._answers(connection, table, data.n_decisions)

    def check(self, schema: Schema) -> None:
        """Refuse what cannot be asked of such data, before any of it is looked at."""
        with _closed() as connection:
            self._asked(connection, schema)

    def _asked(self, connection: "duckdb.DuckDBPyConnection", schema: Schema) -> dict[str, str]:
        """Columns of the data that the expression names, by what it calls them."""
        tree = self._parse(connection)
        known, asked = visible_columns(schema), dict[str, str]()
        allowed = scalar_functions()
        for part in _parts(tree):
            kind = part["class"]
            if kind not in _PARTS:
                rule = f"must look at one row: {str(kind).lower()} is not for rules"
                raise SettingError(self._where, rule)
            if kind == "FUNCTION" and (part["function_name"] not in allowed or part.get("schema")):
                rule = f"must use functions of one row: {_told(part['function_name'])} is none"
                raise SettingError(self._where, rule)
            if kind == "COLUMN_REF":
                name = ".".join(_texts(part["column_names"]))
                asked[name] = self._find(name, part["column_names"], known, schema)
        return asked

    def _find(self, name: str, parts: object, known: tuple[str, ...], schema: Schema) -> str:
        own = [column for column in known if column.lower() == name.lower()]
        exact = name in own
        if len(_texts(parts)) > 1:
            fix = f'Write "{name}" with its quotes.' if own else ""
            raise unknown_column(self._where, name, known, fix=fix)
        if not own:
            quoted = name in schema.actions
            fix = f"Text stands in single quotes: '{name}'." if quoted else ""
            raise unknown_column(self._where, name, known, fix=fix)
        if len(own) > 1 and not exact:
            rule = f"is spelt in {len(own)} ways: {', '.join(own)}"
            raise DataError(f"{self._where}, column {name}", rule, fix="Write it as it stands.")
        return name if exact else own[0]

    def _parse(self, connection: "duckdb.DuckDBPyConnection") -> object:
        """The tree of the expression; refused unless it is one expression and no more."""
        rule = "must be one SQL expression, such as case when map < 65 then 'a' else 'b' end"
        tree = _serialized(connection, f"SELECT (\n{self.expression}\n)")
        frame = _serialized(connection, "SELECT (1)")
        message = tree.get("error_message")
        if tree.get("error"):
            near = re.search(r'near "([^"]*)"', str(message))
            place = f" (near {near.group(1)})" if near and near.group(1).strip(")") else ""
            raise SettingError(self._where, f"{rule}{place}")
        node, plain = _node(tree), _node(frame)
        own, _ = node.pop("select_list"), plain.pop("select_list")
        if node != plain or not isinstance(own, list) or len(own) != 1:
            raise SettingError(self._where, rule)
        return own

    def _bind(self, connection: "duckdb.DuckDBPyConnection", nobody: "pa.Table") -> None:
        """Refuse what does not fit the columns' kinds; nobody is in the table, nor in the line."""
        import duckdb  # noqa: PLC0415

        try:
            self._run(connection, nobody)
        except duckdb.Error as error:
            first = str(error).partition("\n")[0].partition("LINE 1")[0].strip()
            told = re.sub(r"\s+", " ", first.partition("Candidate")[0])[:200]
            raise SettingError(self._where, f"does not fit the columns: {told}") from None

    def _answers(
        self, connection: "duckdb.DuckDBPyConnection", table: "pa.Table", n: int
    ) -> ArrayLike:
        import duckdb  # noqa: PLC0415

        timer = Timer(MOST_SECONDS, connection.interrupt)
        timer.start()
        try:
            answers = self._run(connection, table, n)
        except duckdb.InterruptException:
            raise SettingError(self._where, f"must take less than {MOST_SECONDS:g} s") from None
        except duckdb.OutOfMemoryException:
            raise SettingError(self._where, f"must take less than {MOST_MEMORY}") from None
        except duckdb.Error as error:  # its message may hold a cell
            raise self._fails(connection, table, n, type(error).__name__) from None
        finally:
            timer.cancel()
        if len(answers) != n:
            raise DataError(self._where, "must give one answer for each decision")
        return answers

    def _fails(
        self, connection: "duckdb.DuckDBPyConnection", table: "pa.Table", n: int, kind: str
    ) -> EtipsError:
        """The refusal, with the decisions at which it fails where they can be told one by one."""
        import duckdb  # noqa: PLC0415

        rule = f"must not fail ({kind.removesuffix('Exception')})"
        fix = "try_cast gives null where cast would fail."
        failing = []
        for row in range(min(n, 2_000)):
            try:
                self._run(connection, table.slice(row, 1), 1)
            except duckdb.Error:
                failing.append(row)
        if not failing or n > 2_000:
            return DataError(self._where, f"{rule} at any decision", fix=fix)
        return DataError(self._where, rule, rows=failing, total=n, fix=fix)

    def _run(
        self, connection: "duckdb.DuckDBPyConnection", table: "pa.Table", n: int | None = None
    ) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
        import pyarrow as pa  # noqa: PLC0415

        n = table.num_rows if n is None else n
        numbered = table.append_column(_ROW, pa.array(np.arange(n)))
        connection.register("decisions", numbered)
        query = f'SELECT (\n{self.expression}\n) FROM decisions ORDER BY "{_ROW}"'  # noqa: S608
        found = connection.execute(query).fetchall()
        connection.unregister("decisions")
        answers = np.empty(len(found), object)
        answers[:] = [_plain(value) for (value,) in found]
        return answers


@contextmanager
def _closed() -> "Iterator[duckdb.DuckDBPyConnection]":
    """A database in memory that can reach nothing, and whose settings nobody can change."""
    try:
        import duckdb  # noqa: PLC0415
    except ImportError:
        raise SettingError("rule", "in SQL needs duckdb", fix="pip install duckdb") from None
    connection = duckdb.connect(":memory:", config={**_CLOSED})
    try:
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


@cache
def scalar_functions() -> frozenset[str]:
    """Functions of one row that give the same whenever they are asked."""
    with _closed() as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"
        ).fetchall()
    return frozenset(name for (name,) in rows) | _MACROS


def _serialized(connection: "duckdb.DuckDBPyConnection", query: str) -> dict[str, object]:
    import duckdb  # noqa: PLC0415

    try:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    except duckdb.Error as error:
        return {"error": True, "error_message": str(error)}
    tree: dict[str, object] = json.loads(text)
    return tree


def _node(tree: dict[str, object]) -> dict[str, object]:
    """The query of a single statement; nothing where there are several."""
    statements = tree.get("statements")
    if not isinstance(statements, list) or len(statements) != 1:
        return {"select_list": None}
    node = dict(statements[0]["node"])
    node.setdefault("select_list", None)
    return node


def _parts(tree: object) -> Iterator[dict[str, object]]:
    """Every expression within an expression, itself too."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for inner in tree.values():
            yield from _parts(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from _parts(inner)


def _texts(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _told(name: object) -> str:
    return "count" if name == "count_star" else str(name)


def _plain(value: object) -> object:
    """Decimals and the like as plain numbers; what is no answer stays what it is."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    try:
        return float(value)  # type: ignore[arg-type]  # a Decimal
    except (TypeError, ValueError):
        return value
