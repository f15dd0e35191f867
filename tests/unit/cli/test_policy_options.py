"""Rules and runs on a command line."""

import pytest

from etips.cli.policy_options import AskedPolicies, read_rules
from etips.errors import EtipsError


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
