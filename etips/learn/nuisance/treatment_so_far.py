"""Treatment so far as features of a step: what a policy's own earlier choices leave behind.

Tolerance and late harm depend on how often something was given and how long ago. Networks that read
the newest action alone must learn to count first, which takes more stays than a log has.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

FADING = (0.5, 0.9)
"""What is left of a treatment after another step, one feature of each action each."""

WIDEST = 1000
"""Features of a step, with those added; wider data (images) is left as it is."""


def with_treatment(data: Trajectories) -> Trajectories:
    """The same stays with faded sums of earlier actions and the number of steps as features.

    No loss is among them: a loss that charges every decision with the end would give the end away.
    """
    width = data.sequence.shape[1] + len(FADING) * data.n_actions + 1
    if data.action is None or width > WIDEST:
        return data
    step = np.arange(data.n_steps) - np.repeat(data.offsets[:-1], np.diff(data.offsets))
    parts = [np.asarray(data.sequence[np.arange(data.n_steps)], np.float32)]
    parts += [_faded(data, step, rate).astype(np.float32) for rate in FADING]
    parts.append(step[:, None].astype(np.float32))
    return replace(
        data,
        sequence=np.concatenate(parts, axis=1),
        schema=replace(data.schema, sequence=_names(data.schema)),
    )


def _faded(data: Trajectories, step: Ints, rate: float) -> Floats:
    """Faded count of each action known before the decision a row answers, (n_steps, n_actions)."""
    assert data.action is not None
    taken = np.zeros((data.n_steps, data.n_actions))
    known = data.action >= 0
    taken[known, data.action[known]] = 1.0
    order = np.argsort(step, kind="stable")  # all first steps, then all second ones
    edges = np.searchsorted(step[order], np.arange(step.max(initial=0) + 2))
    sums = np.zeros_like(taken)  # up to and with each row's own action
    for start, stop in pairwise(edges):
        rows = order[start:stop]
        sums[rows] = taken[rows] + (rate * sums[rows - 1] if step[rows[0]] else 0.0)
    if data.lag == 1:
        return sums  # a row answers the next step, to which its own action is an earlier one
    before = np.zeros_like(sums)
    before[1:] = sums[:-1]
    before[step == 0] = 0.0
    return before


def _names(schema: Schema) -> tuple[str, ...]:
    """Names of the features, those added last; an underscore more where one is taken."""
    added = [
        f"earlier action {k}, {rate:g} left" for rate in FADING for k in range(schema.n_actions)
    ]
    names = [*schema.sequence, *schema.static]
    for name in (*added, "steps so far"):
        while name in names:
            name += "_"
        names.append(name)
    n_static = len(schema.static)
    return (*schema.sequence, *names[len(schema.sequence) + n_static :])
