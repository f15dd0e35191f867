"""`etips serve`: a fitted policy to look at in a browser, and to ask by program."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.arguments import takes_columns
from etips.cli.console import progress_bar, require_package, showing_notes
from etips.cli.run_data import RunArgument, read_like
from etips.data.tables.table_spec import TableSpec
from etips.errors import SettingError

_HELP = "A table (CSV, Parquet, ...) or a Trajectories folder whose stays can be looked at."


@takes_columns
def serve(
    run: RunArgument,
    columns: TableSpec,
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
    for name in ("fastapi", "uvicorn"):
        require_package(name, "serve", "serve")
    from etips.serve.gate import Address, listen, make_server, read_token  # noqa: PLC0415

    address = Address(host, port, origin)
    token = read_token(token_file)
    address = address if token is None else replace(address, token=token)
    with showing_notes(), listen(address) as bound, progress_bar() as progress:
        address = replace(address, port=bound.getsockname()[1])
        progress("reading", 0.1)
        if data is None and columns.given:
            raise SettingError("column options", "go with --data")
        stays = None if data is None else read_like([run], data, columns)
        progress("opening the policy", 0.5)
        from etips.serve.service import make_application, open_run  # noqa: PLC0415  # torch

        app = make_application(open_run(run, stays, key=address.token.encode()))
        progress("ready", 1.0)
        kept = bound.dup()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("etips.serve").setLevel(logging.INFO)
    kept.listen()  # a browser that opens the address at once waits a moment, and is not turned away
    typer.echo(f"open {address.link}")
    typer.echo("For research, not for clinical use. Ctrl-C ends it.")
    try:
        make_server(app, address).run(sockets=[kept])
    except KeyboardInterrupt:
        return
    finally:
        kept.close()
