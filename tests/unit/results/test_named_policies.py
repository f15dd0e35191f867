"""Policies as people hand them over."""

import numpy as np
import pytest

import etips
from etips.errors import SettingError
from etips.results.named_policies import as_policy, name_policies


class Even:
    def predict_proba(self, data):
        return np.full((data.n_decisions, 2), 0.5)


def test_one_a_list_and_a_mapping():
    assert list(name_policies(Even())) == ["Even"]
    assert list(name_policies([Even(), Even(), etips.SqlRule("low", "1")])) == [
        "Even",
        "Even 2",
        "low",
    ]
    assert list(name_policies({"a": Even(), "b": lambda s: 1})) == ["a", "b"]


def test_a_bare_function_is_a_rule():
    assert isinstance(as_policy(lambda s: 1), etips.Rule)
    assert list(name_policies(lambda s: 1)) == ["rule"]


@pytest.mark.parametrize("nonsense", [None, 3, [], {}, "runs/a", Even, ["runs/a"]])
def test_anything_else_is_refused(nonsense):
    with pytest.raises(SettingError, match="policies: must"):
        name_policies(nonsense)
