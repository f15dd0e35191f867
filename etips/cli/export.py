"""`etips export`: a policy for other programs."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.console import progress_bar, refusals
from etips.errors import FileError, SettingError

RunArgument = Annotated[Path, typer.Argument(help="Run folder that `etips fit` wrote.")]


def export(
    run: RunArgument,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write, .onnx.")],
) -> None:
    """Write a policy for other programs, as one ONNX file.

    It takes features in the units of the table and gives probabilities and abstention at every
    step; its metadata name features and actions.
    """
    with refusals("etips export"):
        if onnx.suffix != ".onnx":
            raise FileError(str(onnx), "must end in .onnx")
        if not _is_there("onnx"):
            fix = "Install it with: pip install 'etips[onnx]'."
            raise SettingError("export", "needs onnx", fix=fix)
        with progress_bar() as progress:
            progress("opening the policy", 0.1)
            from etips.explanation.onnx_export import export_onnx  # noqa: PLC0415  # torch
            from etips.runs.folder import RunFolder  # noqa: PLC0415

            export_onnx(RunFolder(run).open_policy(), onnx)
        typer.echo(f"{onnx}: steps in, probabilities and abstention out")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # what a test has put in its place
        return False
