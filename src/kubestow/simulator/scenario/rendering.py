"""Charts and kustomizations as objects, rendered by the programs that define them.

`helm template` and `kubectl kustomize` (or `kustomize build`) are run; nothing is rendered here.
Neither talks to a cluster. The files that name them are data: no text of theirs is an option of
these programs, and a kustomization that names addresses is refused, as they would be fetched.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubestow.api.files import Document, documents_in
from kubestow.cluster.documents import replaced_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.scenario.document import Chart
from kubestow.simulator.scenario.kustomization import require_local

TIMEOUT_S: Final = 120
# Of what a program prints about its failure, the end has the reason.
_ERROR_LENGTH: Final = 600
# For what is not found here: git uses no protocol, and connections go to a port that is closed.
_OFFLINE: Final = {
    "GIT_ALLOW_PROTOCOL": "",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
    "NO_PROXY": "",
}


def rendered_kustomization(folder: Path) -> list[Document]:
    """The objects of a kustomization; InputError if it cannot be rendered."""
    if not folder.is_dir():
        raise InputError(f'there is no folder "{folder}" with a kustomization')
    require_local(folder)
    if program := shutil.which("kubectl"):
        command = [program, "kustomize", "--", str(folder)]
    elif program := shutil.which("kustomize"):
        command = [program, "build", "--", str(folder)]
    else:
        raise InputError(
            "a kustomization is rendered by kubectl or kustomize, and neither is found: install "
            "one of them, or name its output with apply"
        )
    return _objects(command, str(folder))


def rendered_chart(path: Path, values: Sequence[Path], chart: Chart) -> list[Document]:
    """The objects of a chart; InputError if it cannot be rendered."""
    for file in (path, *values):
        if not file.exists():
            raise InputError(f'there is no "{file}"')
    program = shutil.which("helm")
    if program is None:
        raise InputError(
            "a chart is rendered by helm, which is not found: install it, or name the output of "
            "helm template with apply"
        )
    command = [program, "template", f"--namespace={chart.namespace}"]
    # Hooks are no part of a release: a test of it would stay as a pod that no installation has.
    command.append("--no-hooks")
    command += [f"--values={file}" for file in values]
    command += [f"--set={name}={_set_text(value)}" for name, value in chart.set.items()]
    command += ["--", chart.release, str(path)]
    return [_in_namespace(one, chart.namespace) for one in _objects(command, str(path))]


def _set_text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_namespace(document: Document, namespace: str) -> Document:
    """The object in the namespace of its release, as an installation creates it."""
    if namespace == "default" or value_at(document.raw, "metadata", "namespace"):
        return document
    raw = replaced_at(document.raw, ("metadata", "namespace"), namespace)
    return Document(raw, document.source)


def _objects(command: Sequence[str], name: str) -> list[Document]:
    program = Path(command[0]).name
    try:
        # The command is made of fixed words and paths, and no shell reads it.
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, **_OFFLINE},
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f'{program} did not end within {TIMEOUT_S} s for "{name}"') from error
    except OSError as error:
        raise InputError(f"cannot run {program}: {error.strerror}") from error
    if done.returncode:
        text = " ".join(done.stderr.decode(errors="replace").split())[-_ERROR_LENGTH:]
        raise InputError(f'{program} cannot render "{name}": {text}')
    return documents_in(done.stdout, name=name)
