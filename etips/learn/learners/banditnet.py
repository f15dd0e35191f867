"""BanditNet: the translated objective before etIPS, with known propensities."""

from typing import Any

from etips.learn.learners.etips import EtIPS
from etips.learn.nuisance.propensity_models import KnownPropensity

MULTIPLIERS = (0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05)
"""Lagrange multipliers of the article, for losses in [0, 1]; there is a matching factor to each."""


def BanditNet(**settings: Any) -> EtIPS:  # noqa: ANN401, N802  # settings and name as EtIPS has them
    """BanditNet (Joachims, Swaminathan and de Rijke 2018), as `EtIPS` sets it up.

    Networks minimise mean((loss - multiplier) policy / propensity) from a random start, one for
    every multiplier, and the one of least self-normalised risk is kept. Propensities are in the
    data; there is no floor on support and no pull towards the clinicians.
    """
    own = {
        "propensity": KnownPropensity(),
        "translations": MULTIPLIERS,
        "init": "random",
        "selection": "paper",
    }
    return EtIPS(**{**own, "support": 0.0, "kl": 0.0, **settings})
