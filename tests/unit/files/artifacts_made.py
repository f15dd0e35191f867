"""Artifacts that the tests of files write, read and damage."""

import subprocess
import sys

from etips.files.artifacts import read_artifact, write_artifact

OLD, NEW = {"a.bin": b"old a", "b.bin": b"old b"}, {"a.bin": b"new a", "c.bin": b"new c"}


def save(folder, contents, **options):
    write_artifact(folder, contents, {"n": 1}, manifest_name="m.json", **options)


def contents(folder):
    """What an artifact holds, once it has passed every check."""
    read_artifact(folder, manifest_name="m.json")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "m.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def dead_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid
