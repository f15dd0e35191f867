"""`etips serve`: a fitted policy to look at in a browser, and to ask by program."""

import logging
import socket
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.columns import takes_columns
from etips.cli.console import progress_bar, refusals
from etips.cli.run_data import read_like
from etips.data.tables.columns import TableColumns
from etips.errors import SettingError

if TYPE_CHECKING:
    from etips.data.trajectories import Trajectories
    from etips.serve.gate import App
    from etips.serve.launch import Address

_HELP = "A table (CSV, Parquet, ...) or a Trajectories folder whose stays can be looked at."


@takes_columns
def serve(
    run: Annotated[Path, typer.Argument(help="Run folder that `etips fit` wrote.")],
    columns: TableColumns,
    data: Annotated[Path | None, typer.Option(help=_HELP)] = None,
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    origin: Annotated[
        str | None, typer.Option(help="https://NAME of a proxy that stands before it.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File that holds the token; ETIPS_SERVE_TOKEN does too.")
    ] = None,
) -> None:
    """Serve a policy: pages to look at stays and try changes, and recommendations as JSON.

    It listens on this machine only, and answers nobody without the token in the address that it
    prints. Nothing is written, and nothing is loaded from elsewhere. Ctrl-C ends it.
    """
    with refusals("etips serve") as tell:
        _require_extra()
        from etips.serve.launch import Address, listen, read_token  # noqa: PLC0415

        address = Address(host, port, origin)
        token = read_token(token_file)
        address = address if token is None else replace(address, token=token)
        with listen(address) as own, progress_bar() as progress:
            progress("reading", 0.1)
            stays = _read(run, data, columns)
            progress("opening the policy", 0.5)
            from etips.serve.application import make_application  # noqa: PLC0415  # torch
            from etips.serve.desk import open_desk  # noqa: PLC0415

            app = make_application(open_desk(run, stays, key=address.token.encode()))
            progress("ready", 1.0)
            kept = own.dup()
        tell()
        _run(app, address, kept)


def _run(app: "App", address: "Address", own: socket.socket) -> None:
    """Serve until somebody stops it; a line of the log for each request."""
    from etips.serve.launch import link_to, make_server, run_server  # noqa: PLC0415

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("etips.serve").setLevel(logging.INFO)
    own.listen()  # whoever opens the address at once waits a moment, and is not turned away
    port = own.getsockname()[1]
    typer.echo(f"open {link_to(address, port)}")
    typer.echo("For research, not for clinical use. Ctrl-C ends it.")
    run_server(make_server(app, address, port), own)


def _read(run: Path, data: Path | None, columns: TableColumns) -> "Trajectories | None":
    """The stays, read as those that the policy was fitted on."""
    if data is None:
        if columns.given:
            raise SettingError("column options", "go with --data")
        return None
    return read_like(run, data, columns)


def _require_extra() -> None:
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        fix = "pip install 'etips[serve]' brings both."
        raise SettingError("serve", "needs fastapi and uvicorn", fix=fix)
