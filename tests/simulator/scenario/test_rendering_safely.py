"""Texts of a scenario or a test are no options of the programs that render; nothing is fetched."""

import os
from pathlib import Path

import pytest

from kubestow.errors import InputError
from kubestow.files.reading import VARIABLE
from kubestow.simulator.scenario.document import Chart
from kubestow.simulator.scenario.reading import parse_scenario
from kubestow.simulator.scenario.rendering import rendered_chart, rendered_kustomization

# Prints its arguments and what it was given of the environment as an object.
PROGRAM = """#!/bin/sh
cat <<END
{apiVersion: v1, kind: ConfigMap, metadata: {name: c},
 data: {git: "${GIT_ALLOW_PROTOCOL-any}", args: "$*"}}
END
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("helm", "kubectl"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return tmp_path


def test_a_release_is_no_option_of_helm(folder: Path) -> None:
    (folder / "web").mkdir()
    chart = Chart(path="web", release="--post-renderer=./evil.sh", namespace="--kubeconfig")
    (made,) = rendered_chart(folder / "web", [], chart)
    arguments = made.raw["data"]["args"].split()
    after = arguments[arguments.index("--") + 1 :]
    assert after == ["--post-renderer=./evil.sh", str(folder / "web")]
    assert "--namespace=--kubeconfig" in arguments


def test_a_folder_is_no_option_of_kustomize(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("--enable-helm").mkdir()
    (made,) = rendered_kustomization(Path("--enable-helm"))
    assert made.raw["data"]["args"] == "kustomize -- --enable-helm"


@pytest.mark.parametrize(
    "content",
    [
        "resources: ['http://127.0.0.1:1/x.yaml']",
        "resources: [github.com/kubernetes-sigs/kustomize/examples/multibases?ref=v1]",
        "bases: ['git@github.com:a/b']",
        "components: ['git::https://host/a']",
        "patches: [{path: 'https://host/patch.yaml'}]",
        "configMapGenerator: [{name: a, files: ['https://host/secret']}]",
        "resources: [deeper]",
        # Each of these is fetched by kubectl of v1.32, from this machine past any proxy.
        "RESOURCES: ['http://127.0.0.1:1/x.yaml']",
        "re\u017fources: ['http://127.0.0.1:1/x.yaml']",
        "configMapGenerator: [{name: a, files: ['key=http://127.0.0.1:1/x']}]",
        "ConfigMapGenerator: [{name: a, files: ['http://127.0.0.1:1/x']}]",
        "generators: [made.yaml]",
        "generators: [working]",
        'transformers: ["kind: PatchTransformer\\npath: http://127.0.0.1:1/x"]',
    ],
)
def test_a_kustomization_fetches_nothing(folder: Path, content: str) -> None:
    (folder / "deeper").mkdir()
    (folder / "deeper" / "kustomization.yml").write_text("resources: ['https://host/x']")
    made = "kind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['http://127.0.0.1:1/x']"
    (folder / "made.yaml").write_text(made)
    (folder / "working").mkdir()
    (folder / "working" / "made.yaml").write_text(made)
    (folder / "working" / "kustomization.yaml").write_text("resources: [made.yaml]")
    (folder / "kustomization.yaml").write_text(content)
    with pytest.raises(InputError, match="nothing is fetched"):
        rendered_kustomization(folder)


@pytest.mark.parametrize("action", ["kustomize: /a", "chart: /a", "chart: {path: /a}"])
def test_a_text_renders_nothing_of_the_disk(action: str) -> None:
    text = f"name: a\nuntil: 1h\nnodes: [{{name: n}}]\nactions:\n- {{at: 1m, {action}}}\n"
    with pytest.raises(InputError) as raised:
        parse_scenario(text.encode(), "text")
    field = action.partition(":")[0]
    expected = f'text, line 5: actions[0].{field}: names the file "/a", but only the text is here'
    assert str(raised.value) == expected


def test_a_local_kustomization_is_rendered_without_protocols_of_git(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "kustomization.yaml").write_text("resources: [../base]")
    (folder / "kustomization.yaml").write_text(
        "resources: [base]\n"
        "commonAnnotations: {docs: 'https://example.com'}\n"
        "configMapGenerator: [{name: a, literals: ['url=https://example.com', 'https://b']}]\n"
        "patches: [{patch: \"kind: Pod\\nspec: {hostname: 'https://c'}\"}]\n"
        "generators: [made.yaml]\n"
    )
    (folder / "made.yaml").write_text("kind: ConfigMapGenerator\nliterals: ['https://d']")
    (made,) = rendered_kustomization(folder)
    assert made.raw["data"]["git"] == ""


def test_a_kustomization_is_read_up_to_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1Ki")
    (folder / "kustomization.yaml").write_text("resources: []\n" + "#" * 2000)
    with pytest.raises(InputError, match="more than the limit of 1 KiB"):
        rendered_kustomization(folder)
