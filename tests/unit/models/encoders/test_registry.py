"""The encoders by name."""

import pytest
from torch import nn

from etips.errors import SettingError
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder
from etips.models.encoders.registry import (
    ENCODERS,
    all_sizes,
    as_encoder,
    encoder_from_json,
    encoders_with,
    make_encoder,
    sizes_of,
)
from etips.models.encoders.transformer import CausalTransformer

USUAL = GRU(12, embed=7)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_has_its_name_and_comes_back_from_json(name):
    encoder = ENCODERS[name]()
    assert encoder.name == name
    assert set(encoder.to_json()) == {"name", *sizes_of(name)}
    assert encoder_from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_says_the_shapes_of_what_it_starts_with(name):
    encoder = ENCODERS[name]()
    started = {key: tuple(v.shape[1:]) for key, v in encoder.start(3, [0]).items()}
    assert dict(encoder.shapes(3)) == started


def test_ours_stay_as_they_are_and_modules_are_wrapped():
    for own in (GRU(3), LSTM(3), CausalTransformer(8), ModuleEncoder(nn.Identity)):
        assert as_encoder(own) is own
    for theirs in (nn.Linear(3, 4), nn.Identity, lambda d: nn.Linear(d, 4)):
        assert isinstance(as_encoder(theirs), ModuleEncoder)


@pytest.mark.parametrize("wrong", [GRU, CausalTransformer, "grue", None, 7, dict])
def test_what_is_no_encoder_is_refused(wrong):
    with pytest.raises(
        SettingError, match=r"^encoder: must be GRU\(\.\.\.\), .* causal torch module\.$"
    ):
        as_encoder(wrong)


@pytest.mark.parametrize("name", ENCODERS)
def test_one_of_ours_may_be_named(name):
    assert as_encoder(name) == ENCODERS[name]()


def test_sizes_that_are_not_given_are_the_usual_ones_or_the_encoders_own():
    assert make_encoder("gru", {}, usual=USUAL) == USUAL
    assert make_encoder("lstm", {"embed": 0}, usual=USUAL) == LSTM(12)
    assert make_encoder("transformer", {"n_heads": 2}, usual=USUAL) == CausalTransformer(12, 2, 2)


def test_a_size_that_the_encoder_does_not_have_is_refused():
    with pytest.raises(SettingError, match=r"^embed: is not a setting of the encoder transformer"):
        make_encoder("transformer", {"embed": 3}, usual=USUAL)


def test_encoders_are_found_by_the_sizes_they_have():
    assert encoders_with("hidden", "embed")[:2] == ("gru", "lstm")
    assert "gru" not in encoders_with("n_heads")
    assert "transformer" in encoders_with("hidden", "n_heads")
    assert set(all_sizes()) >= {"hidden", "embed", "n_heads", "n_layers"}
    assert len(set(all_sizes())) == len(all_sizes())


@pytest.mark.parametrize("document", [None, [], "gru", {}, {"name": "os.system"}, {"name": []}])
def test_a_document_of_nothing_we_know_is_refused(document):
    with pytest.raises(SettingError, match=r"^encoder: must be described"):
        encoder_from_json(document)
