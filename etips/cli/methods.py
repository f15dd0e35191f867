"""Which learner a command makes, and how: from options, from a file, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from etips.cli.set_option import keys_of, read_settings
from etips.data.tables.columns import TableColumns
from etips.errors import (
    EtipsError,
    Faults,
    SettingError,
    SeveralFaultsError,
    faults_of,
    refuse_file,
)
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import Recipe
from etips.runs.device import Device
from etips.runs.run_config import RunConfig, read_config


def choose(
    config: Path | None,
    method: str | None,
    settings: Sequence[str],
    columns: TableColumns,
    device: Device | None,
    seed: int | None,
    hold_out: float | None = None,
) -> RunConfig:
    """What to do: the file, if there is one, and over it whatever the options say."""
    base = RunConfig(Recipe()) if config is None else read_config(config)
    name = base.recipe.method if method is None else method
    given = read_settings(name, settings)
    try:
        recipe = Recipe(name, {**base.recipe.settings, **given}, base.recipe.seed)
    except (SettingError, SeveralFaultsError) as error:
        raise _placed(error, given, config) from error
    return RunConfig(
        replace(recipe, seed=recipe.seed if seed is None else seed),
        columns.over(base.columns),
        base.device if device is None else device,
        base.hold_out if hold_out is None else hold_out,
    )


def make(chosen: RunConfig, settings: Sequence[str], config: Path | None) -> Learner:
    """The learner; a refusal says where the setting came from.

    Args:
        chosen: What to do.
        settings: Entries `key=value` of the command line.
        config: The file, if there was one.
    """
    try:
        return chosen.recipe.make(device=chosen.device.value)
    except (SettingError, SeveralFaultsError) as error:
        raise _placed(error, keys_of(settings), config) from error


def _placed(
    error: EtipsError, given: Mapping[str, object] | set[str], config: Path | None
) -> EtipsError:
    """The refusal of one setting or of several, each with the place that it came from."""
    named = {key.rpartition(".")[2] for key in given} | set(given)
    faults, of_file = Faults(), []
    for own in faults_of(error):
        if not isinstance(own, SettingError):
            faults.note(own)
        elif own.name in named or config is None:
            faults.note(SettingError(f"--set {own.name}", own.rule, fix=own.fix))
        else:
            of_file.append(own)
    if of_file:
        faults.note(refuse_file(str(config), of_file))
    return faults.noted[0] if len(faults.noted) == 1 else SeveralFaultsError(faults.noted)
