"""What `etips tune` is to search: the half of its options that needs torch and optuna."""

from pathlib import Path
from typing import Any

from etips.errors import FileError, SettingError
from etips.files.toml import read_toml
from etips.learn.learners.ranges import Space
from etips.studies.space import PAPER, paper_space, read_space, usual_space
from etips.studies.tuning import Search


def make_search(method: str, space: str | None, **how: Any) -> Search:  # noqa: ANN401
    """The search that was asked for; a slip in a file is refused as the file's.

    Args:
        method: Learner.
        space: What the option says: a file, or the paper's.
        how: The other fields of `Search`.
    """
    try:
        return Search(method=method, space=_space(method, space), **how)
    except SettingError as error:
        if space in (None, PAPER) or error.name in ("method", *how):
            raise
        raise FileError(str(space), f"{error.name} {error.rule}", fix=error.fix) from error


def _space(method: str, space: str | None) -> Space:
    """What the option names: the paper's space, or a file; without it, the usual space."""
    if space is None:
        return usual_space(method)
    if space == PAPER:
        return paper_space(method)
    return read_space(read_toml(Path(space)), method)
