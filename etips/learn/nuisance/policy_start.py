"""Where policies begin: at the clinicians, whether networks or trees imitate these."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor, zeros

from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.nuisance.propensity import FittedPropensity
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network

PURPOSE = 5  # of the random numbers drawn here


@dataclass(frozen=True, eq=False)
class PolicyStart:
    """Networks that policies start from, one a fold.

    Args:
        bundle: Before they are trained: the propensity networks, or networks that say nothing yet.
        offset: What is added to their outputs, by row, shape (n_steps, n_actions): log-propensities
            by trees, which had not seen the stay. None where the networks hold the clinicians.
    """

    bundle: Bundle
    offset: Tensor | None = None

    @classmethod
    def of(
        cls, prepared: Prepared, propensity: FittedPropensity, encoder: Encoder, *, seed: int
    ) -> "PolicyStart":
        """The start that goes with fitted propensities.

        Args:
            prepared: The stays.
            propensity: Fitted on them.
            encoder: Of the networks, where the propensities are trees.
            seed: Of those.
        """
        if isinstance(propensity.bundle, Bundle):
            return cls(propensity.bundle)
        data, n_folds = prepared.data, prepared.folds.n_networks
        n_static = data.static.shape[1]
        network = Network(encoder, prepared.steps.n_features, n_static, data.n_actions)
        silent = zeros(n_folds, data.n_actions)
        bundle = Bundle.start(network, seeds_from(seed, PURPOSE, n_folds), bias=silent)
        return cls(bundle, prepared.by_row(propensity.log_probabilities.astype(np.float32)))

    def sets(self, n_sets: int) -> Bundle:
        """As many sets of them."""
        return self.bundle.select(list(range(self.bundle.n_members)) * n_sets)

    def logits(self, outputs: Tensor, seen: Tensor) -> Tensor:
        """Logits of policies from outputs (J, n, K) at rows (n,)."""
        return outputs if self.offset is None else outputs + self.offset[seen].to(outputs.dtype)
