"""What the manifest of a policy says of its data: read without torch, which opening one needs."""

from pathlib import Path

from etips.data.schema import Schema
from etips.errors import FileError, SettingError
from etips.files.artifacts import read_artifact

MANIFEST = "policy.json"


def read_schema(folder: Path) -> Schema:
    """Schema of the data that a policy was fitted on; a damaged folder is refused by name."""
    document = read_artifact(folder, manifest_name=MANIFEST)
    try:
        return Schema.from_json(document.get("schema"))
    except SettingError as error:
        raise FileError(str(folder / MANIFEST), f"{error.name} {error.rule}") from error
