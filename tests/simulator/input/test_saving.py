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
        ("full/config.json", "exists and is not overwritten; name another file, or add --force"),
        ("gone/all.json", "there is no folder"),
    ],
)
def test_other_files_are_not_overwritten(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "full" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=message):
        require_place(tmp_path / name)


def test_files_are_replaced_with_force(tmp_path: Path) -> None:
    for path in (tmp_path / "all.json", tmp_path / "folder"):
        save_input(documents(), path)
        with pytest.raises(InputError, match="--force"):
            require_place(path)
        require_place(path, force=True)
        save_input(documents(), path, force=True)
        assert len(load_documents([path])) == len(documents())


def test_what_is_saved_has_no_secrets_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    container = {"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"password": "hunter2"}'}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": applied},
        "spec": {"containers": [container]},
    }
    for path in (tmp_path / "all.json", tmp_path / "all.yaml", tmp_path / "folder"):
        save_input([Document(raw, "p")], path)
        (file,) = [path] if path.is_file() else path.iterdir()
        assert "hunter2" not in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("full_disk")
def test_a_folder_is_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    """The nodes alone would load as a cluster of which all pods are gone."""
    old = tmp_path / "configmap.json"
    old.write_text("mine")
    node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    labels = {f"key-{number}": "value" for number in range(200)}
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels},
    }
    documents = [Document(each, "a.yaml#1") for each in (node, pod)]
    with pytest.raises(InputError, match=r"cannot save to .*: File too large"):
        save_input(documents, tmp_path, force=True)
    assert list(tmp_path.iterdir()) == [old]
    assert save_input(documents[:1], tmp_path, force=True) == 1
