"""Whether the server is alive and ready: one line, or one per check with `?verbose`.

A server that answers at all has everything it needs, so every check passes.
"""

from typing import Final

from kubestow.apiserver.http.query import Query
from kubestow.apiserver.http.response import ApiResponse

HEALTH: Final = ("/healthz", "/livez", "/readyz")
_CHECKS: Final = ("ping", "log", "etcd")
_READY_CHECKS: Final = ("ping", "log", "etcd", "etcd-readiness", "informer-sync")
_TEXT: Final = "text/plain; charset=utf-8"


def health_answer(path: str, query: Query) -> ApiResponse | None:
    """The answer at `/readyz` or at one of its checks; None for any other path."""
    root, _, check = path.strip("/").partition("/")
    if f"/{root}" not in HEALTH:
        return None
    checks = _READY_CHECKS if root == "readyz" else _CHECKS
    if check:
        return ApiResponse(b"ok", content_type=_TEXT) if check in checks else None
    if not query.has("verbose"):
        return ApiResponse(b"ok", content_type=_TEXT)
    excluded = query.texts("exclude")
    lines = [
        f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks
    ]
    lines.append(f"{root} check passed\n")
    return ApiResponse("\n".join(lines).encode(), content_type=_TEXT)
