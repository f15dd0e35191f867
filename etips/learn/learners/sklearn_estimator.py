"""What scikit-learn asks of an estimator, so that learners stand in its pipelines and searches.

scikit-learn is imported when it asks, and only then: etips runs without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from etips.data.decisions import Floats
from etips.errors import DataError, SettingError
from etips.learn.learners.params import get_params, set_params

FIT = ("loss", "groups", "propensity", "static", "lengths")
"""Arrays beside the features and the actions that `fit` takes; it asks for all that are given."""

SCORE = ("loss", "sample_weight", "propensity", "static", "lengths")
"""The same of `score`; pipelines insist on handing on a `sample_weight`."""

_OTHERS = "The feature names should match those that were passed during fit."


class SklearnEstimator:
    """Settings by name, tags, and which arrays travel with the rows: scikit-learn's habits."""

    _metadata_request: Any

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Settings by name.

        Args:
            deep: Also those within settings.
        """
        return get_params(self, deep=deep)

    def set_params(self, **params: object) -> Self:
        """Change settings by name, those within settings too; return self."""
        return set_params(self, **params)

    def get_metadata_routing(self) -> Any:  # noqa: ANN401  # scikit-learn's
        """Which arrays `fit` and `score` ask for, besides features and actions.

        Losses and whatever else describes rows are asked for unless `set_fit_request` or
        `set_score_request` says otherwise. It takes
        `sklearn.set_config(enable_metadata_routing=True)` for searches to hand them on.
        """
        if "_metadata_request" not in vars(self):
            from sklearn.utils.metadata_routing import MetadataRequest  # noqa: PLC0415

            requests = MetadataRequest(owner=self)
            for method, names in ((requests.fit, FIT), (requests.score, SCORE)):
                for name in names:
                    method.add_request(param=name, alias=True)
            self._metadata_request = requests
        return self._metadata_request

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Change which arrays `fit` asks for; a text is the name they come under. Return self."""
        return self._request("fit", FIT, requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Change which arrays `score` asks for; return self."""
        return self._request("score", SCORE, requests)

    def _request(
        self, method: str, known: Sequence[str], requests: Mapping[str, bool | str | None]
    ) -> Self:
        for name in requests:
            if name not in known:
                raise SettingError(name, f"is none of the arrays that {method} takes")
        for name, alias in requests.items():
            getattr(self.get_metadata_routing(), method).add_request(param=name, alias=alias)
        return self

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  # scikit-learn's
        """A classifier of actions that needs them to learn; features must be dense and known."""
        from sklearn.utils import (  # noqa: PLC0415
            ClassifierTags,
            InputTags,
            Tags,
            TargetTags,
        )

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
            non_deterministic=False,
        )

    def _keep_names(self, data: object) -> None:
        """Remember the names of a frame's columns, as `feature_names_in_`."""
        names = names_of(data)
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)

    def _check_names(self, data: object) -> None:
        """Refuse a frame whose columns are not those fitted on, in their order."""
        names, known = names_of(data), vars(self).get("feature_names_in_")
        if names is not None and known is not None and list(known) != names:
            raise DataError("features", _OTHERS.rstrip("."))


def names_of(data: object) -> list[str] | None:
    """Names of a frame's columns where all of them are texts, otherwise None."""
    columns = getattr(data, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def self_normalised_risk(
    chosen: Floats, propensity: Floats, loss: Floats, count: Floats | None = None
) -> float:
    """SNIPS, without anything around it; NaN where nobody was treated as the policy would.

    Args:
        chosen: Policy's probability of the logged action, shape (n,).
        propensity: Of the logged action, shape (n,).
        loss: Of it, shape (n,).
        count: How much each decision counts, shape (n,); once if left out.
    """
    weight = chosen / propensity * (1.0 if count is None else count)
    total = float(weight.sum())
    return float(weight @ loss) / total if total > 0 else float("nan")
