"""One training of a run: kept while it goes on, and kept for good when it is finished."""

import time
from dataclasses import replace
from pathlib import Path

from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.state import State
from etips.models.bundle import Bundle
from etips.runs.checkpoint import Mark, is_sound, save_networks, save_state
from etips.runs.run_log import RunLog

EVERY = 10.0
"""Seconds of work that a killed run may lose."""

_WORTH = 50  # an epoch's end is saved if saving costs at most this part of the time since the last


class KeptStage:
    """Where a training stood when it was begun, and a way to keep where it stands.

    Args:
        name: What it is called in the run folder.
        path: Its checkpoint.
        mark: What that belongs to.
        log: Of the run.
        every: Seconds between two checkpoints.
        earlier: What an earlier process left.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        mark: Mark,
        log: RunLog,
        *,
        every: float = EVERY,
        earlier: State | Bundle | None = None,
    ) -> None:
        self.name = name
        self.state = earlier if isinstance(earlier, State) else None
        self.networks = earlier if isinstance(earlier, Bundle) else None
        self._path, self._mark, self._log, self._every = path, mark, log, every
        self._saved, self._cost = time.monotonic(), 0.0

    def keep(self, state: State) -> None:
        """Save the state if it is time, or if an epoch has ended and saving is cheap."""
        began = time.monotonic()
        since = began - self._saved
        if since >= self._every or (state.batch == 0 and since >= _WORTH * self._cost):
            if is_sound(state):
                save_state(self._path, state, self._mark)
            self._saved = time.monotonic()
            self._cost = self._saved - began

    def finish(self, networks: Bundle) -> Bundle:
        """Save the networks in place of the state, so that a resumed run skips the stage.

        Returns them laid out in memory as a resumed run will find them, since what comes after may
        round by that.
        """
        save_networks(self._path, networks, self._mark)
        return networks.select(range(networks.n_members))

    def reporting(self, report: Report | None) -> Report:
        """A report that also says which stage it is, and writes the log."""

        def both(standing: EpochReport) -> None:
            named = replace(standing, stage=self.name)
            self._log.add(named)
            if report is not None:
                report(named)

        return both
