"""Whether an API server has a resource: older servers lack some, and groups can be disabled."""

from typing import Any

import msgspec

from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import ApiResource
from kubestow.errors import NotFoundError


async def serves(session: ApiSession, resource: ApiResource) -> bool:
    """Whether the server serves this version of the resource; the core group always is."""
    if not resource.group:
        # A 404 of the core group comes from a wrong address.
        return True
    try:
        raw = await session.request("GET", f"/apis/{resource.api_version}")
    except NotFoundError:
        return False
    found: dict[str, Any] = msgspec.json.decode(raw)
    return any(served["name"] == resource.plural for served in found.get("resources") or ())
