import pytest

from etips.results.feature_strength import FeatureStrength, compare_strength

FEATURES = (
    FeatureStrength(("lactate",), 2.0),
    FeatureStrength(("SOFA",), 1.5),
    FeatureStrength(("lactate", "SOFA"), 2.6),
    FeatureStrength(("lactate", "SOFA", "age"), 2.9),
)


@pytest.mark.parametrize(
    ("gamma", "words"),
    [
        (1.2, "A hidden factor as strong as SOFA (odds ratio 1.50) would be enough"),
        (1.8, "A hidden factor as strong as lactate (odds ratio 2.00) would be enough"),
        (
            2.5,
            "The hidden factor would have to be as strong as lactate and SOFA together "
            "(odds ratio 2.60)",
        ),
        (
            4.0,
            "The hidden factor would have to be stronger than lactate, SOFA and age together "
            "(odds ratio 2.90)",
        ),
    ],
)
def test_a_hidden_factor_is_held_against_the_weakest_that_would_do(gamma, words):
    assert compare_strength(gamma, FEATURES) == words


def test_without_features_there_is_nothing_to_compare_with():
    assert compare_strength(2.0, ()) is None
