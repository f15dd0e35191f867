"""What commands take beside columns: rules and runs, settings of a learner, a second source."""

from types import SimpleNamespace

import pytest

from etips.cli.compare import join_external
from etips.cli.fitting import read_settings
from etips.cli.run_data import AskedPolicies, read_rules
from etips.errors import EtipsError, FileError
from etips.worlds.two_hospitals import SECOND, simulate_place


def test_a_rule_is_a_name_and_an_expression():
    rules = read_rules(["low=case when map = 3 then 1 end", "all='Y, N'"], None)
    assert {name: rule.expression for name, rule in rules.items()} == {
        "low": "case when map = 3 then 1 end",
        "all": "'Y, N'",
    }


@pytest.mark.parametrize("text", ["1", "=1", "case when map = 3 then 1 end", "map < 3 = true", ""])
def test_what_has_no_name_is_refused(text):
    with pytest.raises(EtipsError, match="must"):
        read_rules([text], None)


def test_a_name_is_given_once(tmp_path):
    with pytest.raises(EtipsError, match="given once"):
        read_rules(["a=1", "a=0"], None)


def test_a_file_holds_rules_under_a_heading_or_alone(tmp_path):
    for text in ('[rules]\nlow = "map < 65"\n', 'low = "map < 65"\n'):
        (tmp_path / "rules.toml").write_text(text)
        assert list(read_rules(["high=map > 65"], tmp_path / "rules.toml")) == ["low", "high"]
    (tmp_path / "rules.toml").write_text("low = 3\n")
    with pytest.raises(EtipsError, match="must hold rules"):
        read_rules([], tmp_path / "rules.toml")


def test_without_a_run_or_a_rule_there_is_nothing_to_do(tmp_path):
    with pytest.raises(EtipsError, match="RUN"):
        AskedPolicies.of([tmp_path], None, None)


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


def test_sources_are_called_after_their_folders_or_their_places(tmp_path):
    first = simulate_place(15, seed=1)
    for name in ("here/log", "there/log", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        simulate_place(15, seed=2, place=SECOND).save(tmp_path / name)
    asked = SimpleNamespace(data=tmp_path / "here/log", fitted={})
    joined, source = join_external(asked, first, tmp_path / "other", allow_seen=False)
    assert len(source) == joined.n_stays
    assert set(source) == {"log", "other"}
    _, source = join_external(asked, first, tmp_path / "there/log", allow_seen=False)
    assert set(source) == {str(tmp_path / "here/log"), str(tmp_path / "there/log")}
    with pytest.raises(FileError, match="must be a folder"):
        join_external(asked, first, tmp_path / "table.csv", allow_seen=False)
