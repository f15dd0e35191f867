"""`--set` takes TOML and what people type."""

import pytest

from etips.cli.set_option import keys_of, read_settings
from etips.errors import EtipsError


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("hidden=96", {"hidden": 96}),
        (" hidden = 96 ", {"hidden": 96}),
        ("epochs=1e2", {"epochs": 100}),
        ("hidden=1_000", {"hidden": 1000}),
        ("support=0", {"support": 0.0}),
        ("translations=0.3,0.7", {"translations": [0.3, 0.7]}),
        ("translations=[0.3, 0.7]", {"translations": [0.3, 0.7]}),
        ("translations=0.3", {"translations": [0.3]}),
        ("encoder=gru", {"encoder": "gru"}),
        ('encoder="gru"', {"encoder": "gru"}),
        ("encoder='gru'", {"encoder": "gru"}),
        ("calibrate=true", {"calibrate": True}),
        ("calibrate=False", {"calibrate": False}),
        ("policy.epochs=20", {"policy.epochs": 20}),
        ('"policy".epochs=20', {"policy.epochs": 20}),
        ("policy={epochs=20, patience=3}", {"policy.epochs": 20, "policy.patience": 3}),
    ],
)
def test_a_value_may_be_toml_or_plain(entry, wanted):
    assert read_settings("etips", [entry]) == wanted
    assert keys_of([entry]) == set(wanted)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("hidden", r"^--set: takes key=value\. Such as"),
        ("hiden=3", r"^--set hiden: is not a setting of etips\. Do you mean hidden\? There are "),
        ("colour=red", r"^--set colour: is not .* There are .*epochs, .*translations.* policy\."),
        ("hidden=many", r"^--set hidden: has a value of the wrong kind\. It must be a whole"),
        ("hidden=2.5", r"^--set hidden: has a value of the wrong kind"),
        ("support=true", r"^--set support: has a value of the wrong kind"),
        ("calibrate=maybe", r"^--set calibrate: has a value of the wrong kind"),
        ("translations=[0.3, 'x']", r"^--set translations: has a value of the wrong kind"),
        ("policy={colour=1}", r"^--set policy\.colour: is not a setting of etips"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_refused_with_the_right_ones(entry, message):
    with pytest.raises(EtipsError, match=message):
        read_settings("etips", [entry])


def test_all_wrong_entries_are_told_at_once():
    with pytest.raises(EtipsError, match=r"^2 faults: \(1\) --set hiden: .*; \(2\) --set epochs: "):
        read_settings("etips", ["hiden=3", "hidden=4", "epochs=few"])
