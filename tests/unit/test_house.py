"""What holds for the package as a whole: how its modules stand to each other."""

import grimp


def import_rings():
    """Sets of modules that import one another, directly or on a way round.

    Imports inside a function count, and so do those for a type checker alone.
    """
    graph = grimp.build_graph("etips", cache_dir=None)
    above = {module: graph.find_upstream_modules(module) for module in graph.modules}
    rings = {
        frozenset([module, *(other for other in above[module] if module in above[other])])
        for module in graph.modules
    }
    return sorted(sorted(ring) for ring in rings if len(ring) > 1)


def test_no_modules_import_one_another_in_a_ring():
    assert import_rings() == []
