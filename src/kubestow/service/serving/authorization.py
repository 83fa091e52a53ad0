"""Authorization (spec 09 §7): some paths are open to all, for the rest the API server is asked."""

import logging
from collections.abc import Sequence
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.errors import ApiError
from kubestow.logs import fail
from kubestow.service.serving.authentication import Reviewer, User
from kubestow.service.serving.reviews import ExpiringCache, ReviewLimit

log = logging.getLogger(__name__)

MASTERS: Final = "system:masters"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Authorizer:
    def __init__(
        self,
        clock: Clock,
        *,
        reviewer: Reviewer | None,
        always_allow_paths: Sequence[str],
        allow_ttl_s: float,
        deny_ttl_s: float,
    ) -> None:
        """Without a reviewer everything but the open paths is forbidden."""
        self._reviewer = reviewer
        self._open_paths = frozenset(path for path in always_allow_paths if not path.endswith("*"))
        self._open_prefixes = tuple(
            path.removesuffix("*") for path in always_allow_paths if path.endswith("*")
        )
        self._allow_ttl_s = allow_ttl_s
        self._deny_ttl_s = deny_ttl_s
        self._decided = ExpiringCache[tuple[User, str, str], bool](clock)
        self._limit = ReviewLimit(clock)

    def is_open(self, path: str) -> bool:
        """Whether every user may read this path; an open path does not include its sub-paths."""
        return path in self._open_paths or path.startswith(self._open_prefixes)

    async def allows(self, user: User, path: str, method: str) -> bool:
        """Raises TooManyReviewsError if it cannot be reviewed."""
        if MASTERS in user.groups or self.is_open(path):
            return True
        if self._reviewer is None:
            return False
        key = (user, path, method)
        is_allowed = self._decided.get(key)
        if is_allowed is None:
            with self._limit.reviewing(key):
                is_allowed = await self._review(user, path, method.lower(), self._reviewer)
            if is_allowed is None:
                return False
            if is_allowed:
                self._limit.accepted(key)
            ttl_s = self._allow_ttl_s if is_allowed else self._deny_ttl_s
            self._decided.put(key, is_allowed, ttl_s=ttl_s)
        return is_allowed

    async def _review(self, user: User, path: str, verb: str, reviewer: Reviewer) -> bool | None:
        """The API server's answer; None if it gave none."""
        question: JsonObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra},
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        }
        try:
            answer = await reviewer.create_document(ACCESS_REVIEWS, question)
        except ApiError as error:
            fail(log, "Failed to make webhook authorizer request", error)
            return None
        status: JsonObject = answer.get("status") or {}
        return bool(status.get("allowed")) and not status.get("denied")


def forbidden_message(user: User, path: str, method: str) -> str:
    return f'forbidden: User "{user.name}" cannot {method.lower()} path "{path}"'
