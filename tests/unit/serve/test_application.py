from served_runs import client, desk


def test_pages_and_json_are_one_application():
    own = client(desk())
    assert own.get("/health").status_code == 200
    assert own.get("/v1/policy").status_code == 200
