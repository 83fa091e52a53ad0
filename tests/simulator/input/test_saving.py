"""What is saved loads again."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from kubestow.api.deep_json import read_json
from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.errors import InputError
from kubestow.simulator.input.saving import require_place, save_input

LABELS = {"app": "web"}  # shared by two objects, which YAML would write as a reference


def documents() -> list[Document]:
    def of(kind: str, name: str, api_version: str = "v1") -> Document:
        raw: dict[str, Any] = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "labels": LABELS},
        }
        return Document(raw, "here")

    return [of("Node", "b"), of("Node", "a"), of("Pod", "p"), of("ReplicaSet", "r", "apps/v1")]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("all.json", ["all.json"]),
        ("all.yaml", ["all.yaml"]),
        ("new/all", ["new/all/node.json", "new/all/pod.json", "new/all/replicaset.apps.json"]),
    ],
)
def test_objects_load_again_in_order(name: str, files: list[str], tmp_path: Path) -> None:
    path = tmp_path / name
    require_place(path)
    assert save_input(documents(), path) == len(files)
    found = sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file())
    assert found == files
    loaded = load_documents([path])
    assert [one.raw for one in loaded] == [one.raw for one in documents()]
    assert "&id" not in (tmp_path / files[0]).read_text()


def deep_document() -> Document:
    """As an API server accepts it, in parameters that it only passes on."""
    parameters = '{"a":' * 5_000 + "1" + "}" * 5_000
    text = f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"x":{parameters}}}'
    return Document(cast(JsonObject, read_json(text.encode())), "here")


def test_an_object_that_is_nested_deeply_loads_again(tmp_path: Path) -> None:
    saved = deep_document()
    save_input([saved], tmp_path / "all.json")
    (loaded,) = load_documents([tmp_path / "all.json"])
    assert msgspec.json.encode(loaded.raw) == msgspec.json.encode(saved.raw)


def test_yaml_cannot_have_an_object_that_is_nested_deeply(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nested too deeply for YAML; name a file with \.json"):
        save_input([deep_document()], tmp_path / "all.yaml")
    assert not (tmp_path / "all.yaml").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("full", "the folder is not empty; name another"),
        ("full/notes.txt", "it is a file; name a folder, or a file with .json or .yaml"),
        ("full/config.json", "exists and is not a saved cluster"),
        ("gone/all.json", "is not a directory; name a file"),
    ],
)
def test_other_files_are_not_overwritten(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "full" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=message):
        require_place(tmp_path / name)


def test_a_saved_list_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    save_input(documents(), path)
    require_place(path)
    save_input(documents()[:1], path)
    assert len(load_documents([path])) == 1
