"""`etips export`: a policy for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from etips.cli.console import progress_bar, require_package
from etips.cli.run_data import RunArgument
from etips.errors import FileError


def export(
    run: RunArgument,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write, .onnx.")],
) -> None:
    """Write a policy for other programs, as one ONNX file.

    It takes features in the units of the table and gives probabilities and abstention at every
    step; its metadata name features and actions.
    """
    if onnx.suffix != ".onnx":
        raise FileError(str(onnx), "must end in .onnx")
    require_package("onnx", "export", "onnx")
    with progress_bar() as progress:
        progress("opening the policy", 0.1)
        from etips.explanation.onnx_export import export_onnx  # noqa: PLC0415  # torch
        from etips.runs.folder import RunFolder  # noqa: PLC0415

        export_onnx(RunFolder(run).open_policy(), onnx)
    typer.echo(f"{onnx}: steps in, probabilities and abstention out")
