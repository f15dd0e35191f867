"""What a policy with the encoder RETAIN looked at: the read-out of its article."""

from dataclasses import dataclass

import numpy as np
import torch

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.models.bundle import Bundle
from etips.models.encoders.retain import RETAIN
from etips.policies.policy import FittedPolicy


@dataclass(frozen=True, eq=False)
class AttentionReadout:
    """Shares of the output for one action at each decision, steps in the order of time.

    Of each network the contributions, those of static features and the constant add up to its
    output; shown is the mean of the networks.

    Args:
        action: Whose output it is, shape (n,).
        visit: How much each step counted, shape (n, longest); they sum to one.
        contribution: Of each feature at each step, shape (n, longest, n_features).
        static: Of each static feature, shape (n, n_static).
        constant: What is said of anybody, shape (n,).
    """

    action: Ints
    visit: Floats
    contribution: Floats
    static: Floats
    constant: Floats

    @property
    def total(self) -> Floats:
        """The output itself, shape (n,)."""
        total: Floats = self.contribution.sum((1, 2)) + self.static.sum(1) + self.constant
        return total


def read_attention(
    policy: FittedPolicy, data: Trajectories, action: Ints | None = None
) -> AttentionReadout:
    """What each feature at each step adds to the output of an action (Choi et al. 2016).

    Outputs are logits, of the policy or of what it imitates, or predicted losses where the policy
    takes the least of them.

    Args:
        policy: Whose networks have the encoder RETAIN.
        data: Decisions to read off; a part of them at a time where memory matters.
        action: One a decision, shape (n_decisions,); the recommended ones if left out.
    """
    networks = policy.propensity if policy.kind == "imitation" else policy.networks
    if not isinstance(networks, Bundle) or not isinstance(networks.network.encoder, RETAIN):
        raise SettingError("policy", "must have networks with the encoder RETAIN")
    if policy.earlier_actions or policy.scaler is None or networks.network.additive:
        raise SettingError("policy", "must read features alone, not earlier actions")
    action = policy.predict(data) if action is None else np.asarray(action)
    if action.shape != (data.n_decisions,):
        raise DataError("action", "must have one entry a decision")
    return _read(networks, policy.scaler.transform(data), action)


def _read(networks: Bundle, scaled: Trajectories, action: Ints) -> AttentionReadout:
    sequence, lengths, static = scaled.histories()
    n, longest = len(sequence), sequence.shape[1]
    place = np.arange(longest)
    there = torch.from_numpy(place[:, None] < lengths)
    back = np.maximum(lengths[None] - 1 - place[:, None], 0)  # (steps back, n)
    windows = torch.from_numpy(sequence[np.arange(n), back].astype(np.float64))
    bundle = networks.to("cpu", torch.float64)
    start, encoder = "encoder.", bundle.network.encoder
    own = {k[len(start) :]: v for k, v in bundle.parameters.items() if k.startswith(start)}
    assert isinstance(encoder, RETAIN)
    with torch.no_grad():
        seen = encoder.attend(own, windows, there)
        head = bundle.parameters["head.weight"]
        chosen = head[:, :, torch.from_numpy(action)]  # (J, hidden + s, n)
        lean = seen.visit[..., None] * seen.variable * chosen[:, None, : encoder.hidden].mT
        shares = torch.einsum("jtnm,jdm->tnd", lean, own["embed"]) / len(head) * windows
        shares = shares * there[..., None]
        visit = seen.visit.mean(0)
    fixed = chosen[:, encoder.hidden :].mean(0).T.numpy() * static.astype(np.float64)
    constant = bundle.parameters["head.bias"].mean(0).numpy()[action]
    return AttentionReadout(
        action,
        _forwards(visit.numpy(), back, there.numpy()),
        _forwards(shares.numpy(), back, there.numpy()),
        fixed,
        constant,
    )


def _forwards(values: Floats, back: Ints, there: Floats) -> Floats:
    """Values by steps back (T, n, ...) as values by decision and step, shape (n, T, ...)."""
    result = np.zeros((values.shape[1], values.shape[0], *values.shape[2:]))
    rows = np.broadcast_to(np.arange(values.shape[1]), back.shape)
    result[rows[there], back[there]] = values[there]
    return result
