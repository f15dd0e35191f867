"""`etips explain`: why a fitted policy recommends what it does."""

import json
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.arguments import DataArgument, takes_columns
from etips.cli.console import (
    JsonFlag,
    SeedOption,
    progress_bar,
    require_package,
    say,
    standing,
)
from etips.cli.run_data import RunArgument, read_like
from etips.data.tables.table_spec import TableSpec
from etips.errors import FileError, SettingError

_ENDINGS = (".html", ".json", ".png")
OutOption = Annotated[
    Path | None,
    typer.Option(help="Page (.html), figures (.json) or drawing (.png) to write."),
]
SaveRulesOption = Annotated[
    Path | None,
    typer.Option(help="Folder for the rules as a policy of their own, with --tree."),
]
AlsoOption = Annotated[
    list[Path] | None,
    typer.Option(help="The same method under another seed; may be repeated."),
]


@takes_columns
def explain(
    run: RunArgument,
    data: DataArgument,
    columns: TableSpec,
    stay: Annotated[
        str | None,
        typer.Option(help="The stay that is asked about; left out, the policy as a whole."),
    ] = None,
    tree: Annotated[
        bool, typer.Option("--tree", help="Also the policy as rules, learned and judged on DATA.")
    ] = False,
    depth: Annotated[int, typer.Option(help="Questions in a row of a rule.", min=1, max=4)] = 3,
    also: AlsoOption = None,
    save_rules: SaveRulesOption = None,
    out: OutOption = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Say why a policy recommends what it does: for one stay, on the whole, or as rules.

    With --stay: at every decision of that stay, which column at which step speaks for what is
    recommended and against what was done, what was done for similar patients, and what to measure
    next where the policy wavers. Without: which columns the policy goes by. With --tree: a few
    rules learned from the log, with what the log says of them and of each.
    """
    _require_writable(out, save_rules, tree=tree)
    require_package("captum", "explain", "explain")
    with progress_bar() as progress:
        progress("reading", 0.0)
        stays = read_like([run], data, columns)
        from etips.explanation.explain import explain as explain_policy  # noqa: PLC0415
        from etips.results.parsing import read_choice  # noqa: PLC0415
        from etips.runs.folder import RunFolder  # noqa: PLC0415

        progress("asking the policy", 0.1)
        explanation = explain_policy(
            run,
            stays,
            stay=stay,
            also=also or (),
            tree=tree,
            depth=depth,
            seed=seed,
            report=lambda at: progress(standing(at), at.epoch / max(at.epochs, 1)),
        )
        if out is not None:
            explanation.report(out)
        if save_rules is not None and explanation.tree is not None:
            explanation.tree.tree.save(save_rules)
        choice = None if as_json or stay else read_choice(RunFolder(run).choice)
    typer.echo(json.dumps(explanation.to_json(), indent=1) if as_json else repr(explanation))
    if choice is not None:
        say(choice.sentence)


def _require_writable(out: Path | None, save_rules: Path | None, *, tree: bool) -> None:
    """Refuse what could not be written, before the long part."""
    if out is not None and out.suffix not in _ENDINGS:
        raise FileError(str(out), f"must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}")
    if save_rules is not None and not tree:
        raise SettingError("--save-rules", "goes with --tree")
    if save_rules is not None and save_rules.exists():
        raise FileError(str(save_rules), "is there already", fix="Name another folder.")
