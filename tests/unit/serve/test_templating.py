from etips.serve.templating import assets, meter, templates, without_styles


def test_nothing_that_pages_load_comes_from_elsewhere_p5():
    for name, asset in assets().items():
        text = asset.content.decode()
        if name != "htmx.min.js":
            assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "https://" not in text
    for name in templates().list_templates(filter_func=lambda own: own.endswith(".html")):
        source = templates().loader.get_source(templates(), name)[0]
        assert "http" not in source.replace("http-equiv", ""), name
        assert " onclick" not in source


def test_styles_of_drawings_move_to_where_they_are_allowed():
    assert without_styles('<svg style="height:3px">') == '<svg data-style="height:3px">'
    assert 'data-style="width:100%"' in meter(7.0, "c0")
    assert 'data-style="width:0%"' in meter(None, "c0")


def test_pages_escape_what_data_are_called():
    own = templates().from_string("{{ x }}{{ x|name }}").render(x="<script>")
    assert "<script>" not in own
