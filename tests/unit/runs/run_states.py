"""States of a training, for the tests of run folders."""

from etips.learn.training.epoch_report import EpochReport
from etips.learn.training.settings import Settings
from etips.learn.training.state import State

SETTINGS = Settings(epochs=3)


def at(start, *, epoch=0, batch=1):
    """Where the training of `start` stands after some batches."""
    state = State.start(start)
    state.epoch, state.batch, state.step = epoch, batch, 10 * epoch + batch
    return state


def after(epoch, stage, held_out):
    """What a training tells after an epoch."""
    return EpochReport(epoch, 9, loss=0.25, held_out=held_out, seconds_left=3.0, stage=stage)
