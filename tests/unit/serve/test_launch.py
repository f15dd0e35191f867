import pytest
from served_runs import TOKEN

from etips.errors import FileError, SettingError
from etips.serve.launch import Address, link_to, listen, read_token, rules_of


def test_it_listens_on_this_machine_only_w1():
    assert Address().host == "127.0.0.1"
    for host in ("0.0.0.0", "::", "192.0.2.1", "somewhere.example"):
        with pytest.raises(SettingError, match="--origin https"):
            Address(host=host)
    assert Address(host="0.0.0.0", origin="https://etips.example").host == "0.0.0.0"


@pytest.mark.parametrize(
    "origin",
    ["http://a.example", "https://", "https://a.example/x", "a.example", "https://a:b@c.example"],
)
def test_an_origin_is_https_and_a_name(origin):
    with pytest.raises(SettingError, match="--origin"):
        Address(origin=origin)


def test_tokens_are_long_and_never_the_same():
    assert Address().token != Address().token
    assert len(Address().token) >= 32
    for token in ("short", "with spaces in between it", "ü" * 30):
        with pytest.raises(SettingError, match="token"):
            Address(token=token)
    assert TOKEN not in repr(Address(token=TOKEN)) + repr(rules_of(Address(token=TOKEN), 1))


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("ETIPS_SERVE_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("ETIPS_SERVE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN[::-1]}\n")
    assert read_token(tmp_path / "token") == TOKEN[::-1]
    with pytest.raises(FileError, match="must be a text file"):
        read_token(tmp_path / "nowhere")


def test_a_port_that_is_taken_is_refused():
    with listen(Address(port=0)) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(SettingError, match="cannot be listened on"):
            listen(Address(port=port))


def test_behind_a_proxy_its_name_is_served_and_the_cookie_is_for_https_alone():
    own = rules_of(Address(origin="https://etips.example"), 8080)
    assert own.secure
    assert "etips.example" in own.hosts
    assert "https://etips.example" in own.origins
    plain = rules_of(Address(), 8080)
    assert not plain.secure
    assert plain.hosts == {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"}


def test_the_address_to_open_brings_the_token():
    assert link_to(Address(token=TOKEN), 81) == f"http://127.0.0.1:81/?token={TOKEN}"
    own = Address(token=TOKEN, origin="https://etips.example")
    assert link_to(own, 81).startswith("https://etips.example/?token=")
