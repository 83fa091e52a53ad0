"""Loading files: all forms of object files, and errors that name the place."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.api.files import Document, load_documents
from kubestow.errors import DecodeError, InputError

Write = Callable[[str, str | bytes], Path]
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def names(documents: list[Document]) -> list[str]:
    return [document.raw["metadata"]["name"] for document in documents]


def test_a_yaml_file_holds_several_documents(write: Write) -> None:
    path = write("web.yaml", f"---\n{POD % 'a'}---\n# nothing\n---\n{POD % 'b'}---\n")
    documents = load_documents([path])
    assert names(documents) == ["a", "b"]
    # The number is the place in the file, whether or not the documents before have content.
    assert [document.source for document in documents] == [f"{path}#1", f"{path}#3"]


def test_json_and_lists_as_kubectl_prints_them(write: Write) -> None:
    items = [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}} for name in "ab"]
    path = write("nodes.json", json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    documents = load_documents([path])
    assert [document.raw for document in documents] == items
    assert documents[1].source == f"{path}#1.items[1]"


def test_items_of_a_typed_list_take_its_type(write: Write) -> None:
    path = write("pods.yaml", "kind: PodList\napiVersion: v1\nitems: [{metadata: {name: a}}]\n")
    (document,) = load_documents([path])
    assert document.raw == {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}


def test_a_list_without_items_holds_nothing(write: Write) -> None:
    assert load_documents([write("pods.yaml", "kind: PodList\nitems: null\n")]) == []


def test_directories_are_read_in_the_order_of_paths(write: Write, tmp_path: Path) -> None:
    write("d/b.yml", POD % "b")
    write("d/a/z.json", '{"kind": "Pod", "metadata": {"name": "z"}}')
    write("d/c.yaml.gz", gzip.compress((POD % "c").encode()))
    write("d/README.md", "not for us")
    assert names(load_documents([tmp_path / "d"])) == ["z", "b", "c"]


def test_files_are_read_in_the_order_given(write: Write) -> None:
    paths = [str(write("b.yaml", POD % "b")), str(write("a.yaml", POD % "a"))]
    assert names(load_documents(paths)) == ["b", "a"]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param((POD % "a").encode(), id="yaml"),
        pytest.param(b'\n{"kind": "Pod", "metadata": {"name": "a"}}', id="json"),
        pytest.param(b"\xef\xbb\xbf" + (POD % "a").encode(), id="byte-order-mark"),
        pytest.param(gzip.compress((POD % "a").encode()), id="gzip"),
        pytest.param(b"{kind: Pod, metadata: {name: a}}", id="yaml-in-braces"),
    ],
)
def test_standard_input_is_recognised_by_its_content(raw: bytes) -> None:
    (document,) = load_documents(["-"], stdin=io.BytesIO(raw))
    assert document.raw["metadata"]["name"] == "a"
    assert document.source == "standard input#1"


def test_yaml_is_read_as_kubectl_reads_it(write: Write) -> None:
    path = write(
        "a.yaml",
        "kind: Pod\n"
        "metadata:\n"
        "  name: a\n"
        "  creationTimestamp: 2026-01-31T12:00:00Z\n"
        "  labels: {time: 12:30:00, day: 2026-01-31, sign: =, 1: one, on: key, e: 1e3}\n"
        "spec: {priority: 10, containers: [{resources: {requests: {cpu: 0.5, memory: 1e9}}}]}\n",
    )
    (document,) = load_documents([path])
    assert document.raw["metadata"]["creationTimestamp"] == "2026-01-31T12:00:00Z"
    assert document.raw["metadata"]["labels"] == {
        "time": "12:30:00",
        "day": "2026-01-31",
        "sign": "=",
        "1": "one",
        "on": "key",
        "e": "1e3",
    }
    assert document.raw["spec"]["priority"] == 10
    assert document.raw["spec"]["containers"][0]["resources"]["requests"]["cpu"] == 0.5


def test_yaml_merges_and_aliases_work(write: Write) -> None:
    path = write(
        "a.yaml",
        "kind: Pod\nmetadata: {name: a, labels: &base {x: '1', y: '2'}}\n"
        "spec: {nodeSelector: {<<: *base, y: '3'}}\n",
    )
    (document,) = load_documents([path])
    assert document.raw["spec"]["nodeSelector"] == {"x": "1", "y": "3"}


def test_the_kind_of_a_kustomization_follows_from_its_name(write: Write, tmp_path: Path) -> None:
    write("base/kustomization.yaml", "resources: [web.yaml]\n")
    write("base/web.yaml", POD % "a")
    documents = load_documents([tmp_path])
    assert [document.raw["kind"] for document in documents] == ["Kustomization", "Pod"]


def test_other_files_of_a_directory_can_be_left_out(write: Write, tmp_path: Path) -> None:
    settings = write("settings.yaml", "replicas: 1\n")
    names_only = write("names.json", '["a", "b"]')
    write("web.yaml", POD % "a")
    others: list[str] = []
    assert names(load_documents([tmp_path], on_other=others.append)) == ["a"]
    assert others == [f"{names_only}#1", f"{settings}#1"]
    # A file that is named is meant.
    with pytest.raises(DecodeError, match='has no "kind"'):
        load_documents([settings], on_other=others.append)
    # This one is an object, though a wrong one.
    write("typo.yaml", "apiVersion: v1\nkinda: Pod\n")
    with pytest.raises(DecodeError, match=r'typo\.yaml#1: has no "kind"'):
        load_documents([tmp_path], on_other=others.append)


def test_unknown_kinds_are_kept(write: Write) -> None:
    path = write(
        "a.yaml", "kind: KubeSchedulerConfiguration\n---\nkind: Deployment\nspec: {a: 1}\n"
    )
    assert [document.raw["kind"] for document in load_documents([path])] == [
        "KubeSchedulerConfiguration",
        "Deployment",
    ]


# 9 names of 9 values each stand for 9**9 values.
ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param(
            "a.json",
            '{"kind": "Pod",\n "metadata": {"name"',
            'cannot read "{path}": the text ends in the middle of the document, in line 2;'
            " is the file complete?",
            id="json-cut-off",
        ),
        pytest.param(
            "a.json",
            '{"kind": "Pod",\n  "metadata": oops}',
            'cannot read "{path}": line 2, column 15: JSON is malformed: invalid character',
            id="json-malformed",
        ),
        pytest.param(
            "a.json",
            '{"kind": "Pod"}\n{"kind": "Pod"}',
            'cannot read "{path}": line 2, column 2: JSON is malformed: trailing characters',
            id="json-two-documents",
        ),
        pytest.param(
            "a.json",
            "\n",
            'cannot read "{path}": the file is empty, expected a JSON document',
            id="json-empty",
        ),
        pytest.param(
            "a.json", b'{"kind": "\xff"}', 'cannot read "{path}": not JSON: ', id="json-not-utf-8"
        ),
        pytest.param(
            "a.json",
            "[" * 100_000,
            'cannot read "{path}": the text ends in the middle of the document, in line 1',
            id="json-deep-and-cut",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: a\n",
            'cannot read "{path}": line 3, column 1: while parsing a flow mapping did not find'
            " expected ',' or '}}'",
            id="yaml-cut-off",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata:\n  name: a\n  labels: {}\n  name: b\n",
            'cannot read "{path}": line 5, column 3: the key "name" is given twice',
            id="yaml-key-twice",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\n? [a]\n: b\n",
            'cannot read "{path}": line 2, column 3: expected a text as key',
            id="yaml-list-as-key",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: &a {b: *a}\n",
            'cannot read "{path}": line 2, column 18: an alias must not contain itself',
            id="yaml-recursive",
        ),
        pytest.param(
            "a.yaml",
            ALIAS_BOMB,
            'cannot read "{path}": line 6, column 10: the aliases repeat more than 100000 values',
            id="yaml-aliases",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nspec:\n  x: " + "[" * 100_000,
            'cannot read "{path}": line 3, column 154: nested more than 150 levels deep',
            id="yaml-deep-flow",
        ),
        pytest.param(
            "a.yaml",
            "- " * 20_000,
            'cannot read "{path}": line 1, column 301: nested more than 150 levels deep',
            id="yaml-deep-block",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: !!int x}\n",
            'cannot read "{path}": line 1, column 1: a number is too long, or a value does not',
            id="yaml-not-its-tag",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nspec: {priority: " + "1" * 5000 + "}\n",
            'cannot read "{path}": line 1, column 1: a number is too long, or a value does not',
            id="yaml-number-too-long",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: !!binary eA==}\n",
            'cannot read "{path}": line 2, column 18: could not determine a constructor',
            id="yaml-binary",
        ),
        pytest.param(
            "a.json",
            '{"kind": "Pod",\n "metadata": {"name": "a", "x": ["\\"name\\":"], "n\\u0061me": "b"}}',
            'cannot read "{path}": line 2, column 48: the key "name" is given twice',
            id="json-key-twice",
        ),
        pytest.param(
            "a.json",
            '{"kind": "Pod",\n"x": ' + "[" * 5000 + "\n" + "]" * 5000 + ', "x": 1}',
            'cannot read "{path}": line 3, column 5003: the key "x" is given twice',
            id="json-deep-with-a-key-twice",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: a}\nspec: {priority: 2147483648}\n",
            '{path}#1: cannot decode Pod "a": spec.priority is 2147483648: expected at most'
            " 2147483647",
            id="priority-beyond-int32",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
            "spec: {replicas: 99999999999}\n",
            '{path}#1: Deployment "a": spec.replicas is 99999999999, expected a whole number from'
            " 0 to 1000000",
            id="too-many-replicas",
        ),
        pytest.param(
            "a.yaml",
            "kind: !Ref Pod\n",
            'cannot read "{path}": line 1, column 7: could not determine a constructor for the tag',
            id="yaml-unknown-tag",
        ),
        pytest.param(
            "a.yaml", b"kind: \x01", 'cannot read "{path}": ', id="yaml-control-character"
        ),
        pytest.param(
            "a.yaml.gz",
            gzip.compress(b"kind: Pod\n")[:-6],
            'cannot unpack "{path}": ',
            id="gzip-cut-off",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: a}\n---\njust text\n",
            "{path}#2: found a text, expected a Kubernetes object",
            id="no-map",
        ),
        pytest.param(
            "a.yaml",
            "metadata: {name: a}\n",
            '{path}#1: has no "kind", expected a Kubernetes object',
            id="no-kind",
        ),
        pytest.param(
            "a.yaml",
            "kind: List\nitems: {a: b}\n",
            '{path}#1: items is {{"a": "b"}}, expected a list',
            id="items-no-list",
        ),
        pytest.param(
            "a.yaml",
            "kind: List\nitems: [{kind: Pod, metadata: {name: a}}, 5]\n",
            "{path}#1.items[1]: found 5, expected a Kubernetes object",
            id="item-no-map",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {namespace: web}\n",
            '{path}#1: Pod in namespace "web" has no metadata.name',
            id="no-name",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: a, labels: {canary: yes}}\n",
            '{path}#1: cannot decode Pod "a": metadata.labels.canary is true: expected a string;'
            " put it in quotes",
            id="label-no-string",
        ),
        pytest.param(
            "a.yaml",
            "kind: Deployment\nmetadata: {name: a, annotations: {version: 1.10}}\n",
            '{path}#1: cannot decode Deployment "a": metadata.annotations.version is 1.1:'
            " expected a string; put it in quotes",
            id="annotation-of-an-unknown-kind",
        ),
        pytest.param(
            "a.yaml",
            "kind: Node\nmetadata: {name: n}\nspec: {taints: [{key: a, effect: Never}]}\n",
            '{path}#1: Node "n": spec.taints[0].effect is "Never", expected one of NoSchedule',
            id="invalid-value",
        ),
        pytest.param(
            "a.yaml",
            f"{POD % 'a'}---\n# nothing\n---\nkind: Pod\nmetadata: {{name: 1}}\n",
            '{path}#3: cannot decode Pod "1": metadata.name is 1: expected a string; put it in'
            " quotes (in the document from line 7)",
            id="line-of-a-later-document",
        ),
        pytest.param(
            "chart/templates/a.yaml",
            "kind: Pod\n{{- if .Values.on }}\n",
            'cannot read "{path}": line 3, column 1: while scanning a simple key could not find'
            " expected ':'; a Helm chart is rendered with: helm template CHART",
            id="template-of-a-chart",
        ),
        pytest.param(
            "chart/values.yaml",
            "replicas: 1\n",
            '{path}#1: has no "kind", expected a Kubernetes object; a Helm chart is rendered with:'
            " helm template CHART",
            id="values-of-a-chart",
        ),
    ],
)
def test_errors_name_the_place(
    write: Write,
    name: str,
    content: str | bytes,
    message: str,
) -> None:
    path = write(name, content)
    good = write("good.yaml", POD % "a")
    with pytest.raises(DecodeError) as caught:
        load_documents([good, path])
    assert str(caught.value).startswith(message.format(path=path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r'cannot read ".*gone.yaml": No such file'):
        load_documents([tmp_path / "gone.yaml"])


def test_an_empty_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"holds no \.yaml, \.yml, \.json file"):
        load_documents([tmp_path])


def test_a_folder_below_that_cannot_be_read_is_named(
    write: Write, tmp_path: Path, closed: Callable[[Path], None]
) -> None:
    write("a.yaml", POD % "a")
    (tmp_path / "more").mkdir()
    assert len(load_documents([tmp_path])) == 1
    closed(tmp_path / "more")
    with pytest.raises(InputError, match=r'^cannot read ".*/more": Permission denied$'):
        load_documents([tmp_path])
