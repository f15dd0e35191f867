"""Memory that is free; threads that let others have the cores."""

import os
import resource
import subprocess
import sys

import pytest

from etips import machine

GROUPS = machine._GROUPS


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A machine with 3 MB free, no container, no limit of the process."""
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(machine, "_GROUPS", ())
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    3000 kB\n")
    (tmp_path / "status").write_text("Name:\tpython\nVmSize:\t  1000 kB\n")
    return tmp_path


def test_free_memory_is_what_the_machine_says_is_available(system):
    assert machine.free_memory() == 3000 * 1024


def test_here_some_memory_is_free():
    assert 10**6 < machine.free_memory() < 10**14


@pytest.mark.parametrize("version", [0, 1])
def test_a_container_has_what_is_left_of_its_limit(version, system, monkeypatch):
    _, limit, use, files = GROUPS[version]
    monkeypatch.setattr(machine, "_GROUPS", ((system, limit, use, files),))
    (system / limit).write_text("1000000\n")
    (system / use).write_text("700000\n")
    (system / "memory.stat").write_text(f"anon 5\n{files} 100000\n")
    assert machine.free_memory() == 400_000
    (system / "memory.stat").write_text("anon 5\n")
    assert machine.free_memory() == 300_000
    (system / use).write_text("2000000\n")
    assert machine.free_memory() == 0
    (system / limit).write_text("max\n")
    assert machine.free_memory() > 400_000


def test_a_process_has_what_is_left_of_its_own_limit(system, monkeypatch):
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (1500 * 1024,) * 2)
    assert machine.free_memory() == 500 * 1024
    (system / "status").unlink()
    assert machine.free_memory() == 3000 * 1024


def test_where_the_system_tells_nothing_nothing_is_known(system):
    (system / "meminfo").unlink()
    assert machine.free_memory() is None
    (system / "meminfo").write_text("MemTotal: 9 kB\n")
    assert machine.free_memory() is None


THREADS = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_")


def test_commands_let_threads_sleep_and_multiply_in_one(tmp_path):
    """Whoever loads torch before would be too late: it looks at the environment once."""
    code = (
        "import os, sys\n"
        "from etips.cli import main\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules)\n"
        "def app(**_):\n"
        "    from threadpoolctl import threadpool_info\n"
        "    print(os.environ.get('OMP_WAIT_POLICY'), [own['num_threads'] for own in"
        " threadpool_info() if own['internal_api'] == 'openblas'])\n"
        "main.app = app\n"
        "main.main()\n"
    )
    pytest.importorskip("threadpoolctl")
    bare = {k: v for k, v in os.environ.items() if not k.startswith(THREADS)}
    for own, said in (({}, "passive"), ({"OMP_NUM_THREADS": "1"}, "None")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**bare, **own},
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout in (f"{said} [1]\n", f"{said} []\n")


def n_threads():
    return [ask() for ask, _ in machine._products()]


@pytest.mark.skipif(not machine._products(), reason="NumPy's products are another library's")
def test_products_do_without_threads_until_the_last_who_asked_for_it_has_ended():
    before = n_threads()
    first, second = machine.still_products(), machine.still_products()
    first.__enter__()
    second.__enter__()
    assert set(n_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(n_threads()) == {1}
    second.__exit__(None, None, None)
    assert n_threads() == before


def test_a_fit_leaves_torch_out_of_the_search_for_garbage(tmp_path):
    table = tmp_path / "log.csv"
    rows = [f"{n},{n % 2},{n % 3 % 2},{n % 5}" for n in range(60)]
    table.write_text("\n".join(["stay,drug,died,age", *rows]))
    code = (
        "import gc, sys\n"
        "from etips.cli import main\n"
        "try:\n"
        "    main.main()\n"
        "finally:\n"
        "    print(gc.get_freeze_count(), gc.isenabled())\n"
    )
    options = ["--stay", "stay", "--action", "drug", "--loss", "died", "--method", "most-frequent"]
    command = [sys.executable, "-c", code, "fit", str(table), "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, *options], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, collects = done.stdout.splitlines()[-1].split()
    assert (int(count) > 100_000, collects) == (True, "True")


@pytest.mark.parametrize(("quota", "granted"), [("150000 100000", 2), ("5000 100000", 1)])
@pytest.mark.parametrize("n_files", [1, 2])
def test_cores_are_those_that_a_container_is_granted(
    tmp_path, monkeypatch, quota, granted, n_files
):
    files = tuple(tmp_path / str(number) for number in range(n_files))
    monkeypatch.setattr(machine, "_QUOTAS", ((tmp_path / "none",), files))
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(7), raising=False)
    assert machine.cores() == 7
    for file, word in zip(files, [quota] if n_files == 1 else quota.split(), strict=True):
        file.write_text(f"{word}\n")
    assert machine.cores() == granted
    files[0].write_text("max 100000\n" if n_files == 1 else "-1\n")
    assert machine.cores() == 7
