"""A kubeconfig with the server's address and token, for kubectl and client libraries.

Not here: the file it is written to (`kubeconfig_file`).
"""

import base64

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
