"""The kubeconfig file with the server's address and token, for kubectl and client libraries."""

import base64
import os
from pathlib import Path

import yaml

from kubestow.api.meta import JsonObject


def kubeconfig(
    *, url: str, authority: bytes = b"", token: str = "", name: str = "kubestow"
) -> JsonObject:
    """A kubeconfig with one cluster, one user and one context."""
    cluster: JsonObject = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write_kubeconfig(path: Path, config: JsonObject) -> None:
    """Write the file so that only its owner can read the token in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        yaml.safe_dump(config, file, sort_keys=False)


def remove_kubeconfig(path: Path) -> None:
    """Remove the file: its server is gone."""
    path.unlink(missing_ok=True)
