"""Users, their tokens, and what roles allow them."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.testing.clock import ManualClock

Serve = Callable[..., Any]

ADMIN = {"Authorization": "Bearer secret"}
PODS = "/api/v1/namespaces/default/pods"
ACCOUNT: JsonObject = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "bot", "namespace": "default"},
}
RBAC = "rbac.authorization.k8s.io/v1"


def role(kind: str = "Role", **rule: Any) -> JsonObject:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"], **rule}
    return {"apiVersion": RBAC, "kind": kind, "metadata": {"name": "reader"}, "rules": [rule]}


def binding(kind: str = "RoleBinding", role: str = "Role", **subject: Any) -> JsonObject:
    subject = {"kind": "ServiceAccount", "name": "bot", "namespace": "default"} | subject
    return {
        "apiVersion": RBAC,
        "kind": kind,
        "metadata": {"name": "b"},
        "roleRef": {"kind": role, "name": "reader"},
        "subjects": [subject],
    }


async def token_of(client: Any, **spec: Any) -> Any:
    path = "/api/v1/namespaces/default/serviceaccounts/bot/token"
    return await client.call("POST", path, {"spec": spec}, headers=ADMIN)


def bearer(reply: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {reply.body['status']['token']}"}


def test_a_token_of_a_service_account_is_that_of_its_user(
    serve: Serve, cluster: MemoryCluster, clock: ManualClock
):
    cluster.load([ACCOUNT])

    async def work(client: Any):
        made = await token_of(client, expirationSeconds=900)
        assert made.status == 201
        assert made.body["status"]["expirationTimestamp"]
        review = {"spec": {"token": made.body["status"]["token"]}}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        user = (await client.call("POST", path, review, headers=ADMIN)).body["status"]["user"]
        assert user["username"] == "system:serviceaccount:default:bot"
        assert "system:serviceaccounts:default" in user["groups"]
        own = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        whoami = await client.call("POST", own, {}, headers=bearer(made))
        assert whoami.body["status"]["userInfo"] == user
        clock.advance_s(901)
        assert (await client.call("POST", own, {}, headers=bearer(made))).status == 401
        again = await token_of(client)
        cluster.delete(cluster.resources.named("serviceaccounts"), "default", "bot")
        assert (await client.call("POST", own, {}, headers=bearer(again))).status == 401

    serve(work, token="secret")


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        pytest.param([], 403, id="none"),
        pytest.param([role(), binding()], 200, id="role"),
        pytest.param([role(), binding(name="other")], 403, id="of-another-account"),
        pytest.param([role(verbs=["get"]), binding()], 403, id="other-verb"),
        pytest.param([role(resources=["*"], verbs=["*"]), binding()], 200, id="everything"),
        pytest.param([role(resourceNames=["x"]), binding()], 403, id="only-some"),
        pytest.param(
            [role("ClusterRole"), binding("ClusterRoleBinding", "ClusterRole")], 200, id="cluster"
        ),
        pytest.param(
            [role(), binding(kind="RoleBinding") | {"subjects": [
                {"kind": "Group", "name": "system:serviceaccounts"}
            ]}],
            200,
            id="group",
        ),
    ],
)  # fmt: skip
def test_roles_decide_what_an_account_may_do(
    serve: Serve, cluster: MemoryCluster, objects: list[JsonObject], status: int
):
    cluster.load([ACCOUNT, *objects])

    async def work(client: Any):
        return await client.call("GET", PODS, headers=bearer(await token_of(client)))

    reply = serve(work, token="secret")
    assert reply.status == status
    if status == 403:
        assert reply.body["message"] == (
            'pods is forbidden: User "system:serviceaccount:default:bot" cannot list resource'
            ' "pods" in API group "" in the namespace "default"'
        )


@pytest.mark.parametrize(
    ("verb", "path", "is_allowed"),
    [
        pytest.param("get", "/metrics", False, id="metrics"),
        pytest.param("get", "/api", False, id="api"),
        pytest.param("get", "/healthz", True, id="health"),
        pytest.param("get", "/version", True, id="version"),
        pytest.param("put", "/version", False, id="write"),
        pytest.param("list", "", False, id="pods"),
    ],
)
def test_anonymous_users_may_read_only_what_is_public(
    serve: Serve, verb: str, path: str, is_allowed: bool
):
    who = {"user": "system:anonymous", "groups": ["system:unauthenticated"]}
    wanted = (
        {"nonResourceAttributes": {"verb": verb, "path": path}}
        if path
        else {"resourceAttributes": {"verb": verb, "resource": "pods"}}
    )

    async def work(client: Any):
        reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return await client.call("POST", reviews, {"spec": {**who, **wanted}}, headers=ADMIN)

    assert serve(work, token="secret").body["status"]["allowed"] is is_allowed


def test_the_administrator_can_act_as_another_user(serve: Serve):
    async def work(client: Any):
        headers = {**ADMIN, "Impersonate-User": "jane", "Impersonate-Group": "team"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        who = await client.call("POST", path, {}, headers=headers)
        return who, await client.call("GET", PODS, headers=headers)

    who, pods = serve(work, token="secret")
    assert who.body["status"]["userInfo"] == {
        "username": "jane",
        "groups": ["team", "system:authenticated"],
    }
    assert pods.status == 403


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("a.b.c", id="not-signed-here"),
        pytest.param("...", id="dots"),
        pytest.param("\udcff.\udcfe", id="not-utf8"),
        pytest.param("x" * 8_000, id="long"),
    ],
)
def test_a_bad_token_is_unauthorized(serve: Serve, token: str):
    async def work(client: Any):
        review = {"spec": {"token": token.encode(errors="replace").decode()}}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        return await client.call("POST", path, review, headers=ADMIN)

    assert serve(work, token="secret").body["status"]["authenticated"] is False


@pytest.mark.parametrize("seconds", [10, 2**32 + 1])
def test_the_lifetime_of_a_token_has_limits(serve: Serve, cluster: MemoryCluster, seconds: int):
    cluster.load([ACCOUNT])

    async def work(client: Any):
        return await token_of(client, expirationSeconds=seconds)

    reply = serve(work, token="secret")
    assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (
        422,
        "spec.expirationSeconds",
    )


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
def test_health_is_reported_check_by_check(serve: Serve, path: str):
    async def work(client: Any):
        plain = await client.get(path)
        verbose = await client.get(path, verbose="", exclude="etcd")
        one = await client.call("GET", f"{path}/ping", headers=ADMIN)
        none = await client.call("GET", f"{path}/nope", headers=ADMIN)
        return plain.body, verbose.body.splitlines(), one.body, none.status

    plain, verbose, one, none = serve(work, token="secret")
    assert (plain, one, none) == ("ok", "ok", 404)
    assert verbose[0] == "[+]ping ok"
    assert "[+]etcd excluded: ok" in verbose
    assert verbose[-1] == f"{path.strip('/')} check passed"
