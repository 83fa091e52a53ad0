"""Server and credentials from a kubeconfig or a pod (spec 09 §4.1)."""

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.cluster.http.credentials import ExecPlugin, TokenFile, basic, bearer
from kubestow.cluster.http.kubeconfig import (
    ServerConfig,
    context_namespace,
    default_kubeconfigs,
    find_server,
    in_cluster,
    load_kubeconfig,
    load_kubeconfigs,
)
from kubestow.errors import ConfigError
from kubestow.testing.clock import ManualClock

CLOCK = ManualClock(1000)


def write(tmp_path: Path, *, cluster: Any = None, user: Any = None, **more: Any) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [
            {"name": "c1", "cluster": {"server": "https://one:6443", **(cluster or {})}},
            {"name": "c2", "cluster": {"server": "https://two/"}},
        ],
        "users": [{"name": "u1", "user": user or {}}, {"name": "u2", "user": {"token": "t2"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c1", "user": "u1"}},
            {"name": "two", "context": {"cluster": "c2", "user": "u2", "namespace": "x"}},
            {"name": "nobody", "context": {"cluster": "c1"}},
            {"name": "lost", "context": {"cluster": "c9", "user": "u1"}},
        ],
        **more,
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def load(path: str, **options: Any) -> ServerConfig:
    return load_kubeconfig(path, CLOCK, **{"environ": {}, **options})


def headers(config: ServerConfig) -> Any:
    return asyncio.run(config.credentials.identify()).headers


def test_the_current_context_or_the_one_named(tmp_path: Path):
    path = write(tmp_path, user={"token": "t1"})
    assert load(path).server == "https://one:6443"
    assert headers(load(path)) == bearer("t1")
    two = load(path, context="two")
    assert two.server == "https://two"
    assert headers(two) == bearer("t2")
    assert headers(load(path, context="nobody")) == ()


def test_a_master_replaces_the_server(tmp_path: Path):
    assert load(write(tmp_path), master="https://other:1/").server == "https://other:1"
    assert load(write(tmp_path), master="other:1").server == "http://other:1"


def test_paths_are_relative_to_the_file_and_text_is_decoded(tmp_path: Path):
    encoded = base64.b64encode(b"PEM").decode()
    path = write(
        tmp_path,
        cluster={
            "certificate-authority": "pki/ca.crt",
            "certificate-authority-data": encoded,
            "tls-server-name": "api",
            "insecure-skip-tls-verify": True,
        },
        user={
            "client-certificate": "/abs/c.crt",
            "client-key": "c.key",
            "client-certificate-data": encoded,
            "client-key-data": encoded,
        },
    )
    tls = load(path).tls
    assert tls.ca_file == str(tmp_path / "pki/ca.crt")
    assert tls.certificate_file == "/abs/c.crt"
    assert tls.key_file == str(tmp_path / "c.key")
    assert tls.ca_data == tls.certificate_data == tls.key_data == b"PEM"
    assert tls.server_name == "api"
    assert tls.skips_verification


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({"username": "ann", "password": "pw"}, basic("ann", "pw"), id="password"),
        pytest.param({"token": "t", "username": "ann"}, bearer("t"), id="token-first"),
        pytest.param({"tokenFile": "tok", "token": "t"}, bearer("filed"), id="file-first"),
        pytest.param({"tokenFile": "gone", "token": "t"}, bearer("t"), id="file-gone"),
        pytest.param({"token": None}, (), id="null"),
    ],
)
def test_users(tmp_path: Path, user: Any, expected: Any):
    (tmp_path / "tok").write_text("filed")
    assert headers(load(write(tmp_path, user=user))) == expected


def test_impersonation(tmp_path: Path):
    user = {
        "token": "t",
        "as": "bob",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"Acme.com/Dept": ["x", "y"]},
    }
    assert load(write(tmp_path, user=user)).impersonation == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-acme.com%2Fdept", "x"),
        ("Impersonate-Extra-acme.com%2Fdept", "y"),
    )


def test_proxies(tmp_path: Path):
    environ = {"HTTPS_PROXY": "env:1"}
    given = load(write(tmp_path, cluster={"proxy-url": "http://given:2"}), environ=environ).proxy
    assert given is not None
    assert given.endpoint.host == "given"
    found = load(write(tmp_path), environ=environ).proxy
    assert found is not None
    assert found.endpoint.host == "env"
    assert load(write(tmp_path)).proxy is None


def test_a_plugin_gets_the_cluster_if_configured(tmp_path: Path):
    (tmp_path / "ca.crt").write_bytes(b"PEM")
    script = tmp_path / "bin" / "plugin"
    script.parent.mkdir()
    status = '{"token": "\'"$KIND"\'"}'
    script.write_text(
        '#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > "$OUT"\n'
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1beta1",'
        f' "kind": "ExecCredential", "status": {status}}}\'\n'
    )
    script.chmod(0o755)
    out = tmp_path / "info"
    path = write(
        tmp_path,
        cluster={
            "certificate-authority": "ca.crt",
            "proxy-url": "http://p:1",
            "tls-server-name": "api",
            "insecure-skip-tls-verify": True,
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
            ],
        },
        user={
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "command": "./bin/plugin",
                "args": None,
                "env": [{"name": "OUT", "value": str(out)}, {"name": "KIND", "value": "t"}],
                "provideClusterInfo": True,
                "interactiveMode": "Never",
            }
        },
    )
    config = load(path, environ={"PATH": "/usr/bin:/bin"})
    assert isinstance(config.credentials, ExecPlugin)
    assert headers(config) == bearer("t")
    assert json.loads(out.read_text())["spec"]["cluster"] == {
        "server": "https://one:6443",
        "tls-server-name": "api",
        "insecure-skip-tls-verify": True,
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
        "proxy-url": "http://p:1",
        "config": {"audience": "x"},
    }


@pytest.mark.parametrize(
    ("changes", "context", "message"),
    [
        pytest.param({}, "three", 'no context "three"; it has "one", "two"', id="no-context"),
        pytest.param({}, "lost", 'no cluster "c9"; it has "c1", "c2"', id="no-cluster"),
        pytest.param({"current-context": ""}, "", "has no current-context", id="none-current"),
        pytest.param({"users": []}, "", 'no user "u1"; it has none', id="no-user"),
        pytest.param({"clusters": "x"}, "", "is not valid: .*clusters", id="wrong-type"),
        pytest.param({"cluster": {"server": ""}}, "", 'cannot use the server ""', id="no-server"),
        pytest.param(
            {"user": {"auth-provider": {"name": "gcp"}}}, "", "has an auth-provider", id="provider"
        ),
        pytest.param(
            {"cluster": {"certificate-authority-data": "a"}},
            "",
            "certificate-authority-data of kubeconfig .* is not base64",
            id="no-base64",
        ),
    ],
)
def test_errors_are_explained(tmp_path: Path, changes: Any, context: str, message: str):
    with pytest.raises(ConfigError, match=message):
        load(write(tmp_path, **changes), context=context)


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot read the kubeconfig .*No such file"):
        load(str(tmp_path / "none"))
    path = tmp_path / "config"
    path.write_text("users:\n  - token: hush\n  x")
    with pytest.raises(ConfigError, match="is not YAML at line 4") as caught:
        load(str(path))
    assert "hush" not in str(caught.value)


# --- Without a file ---------------------------------------------------------------------------

POD_ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("account")
    (tmp_path / "ca.crt").write_text("PEM")
    return tmp_path


def test_in_a_pod_the_service_account_counts(account: Path):
    config = find_server(CLOCK, environ=POD_ENVIRONMENT, service_account_dir=str(account))
    assert config.server == "https://10.0.0.1:443"
    assert config.tls.ca_file == str(account / "ca.crt")
    assert isinstance(config.credentials, TokenFile)
    assert headers(config) == bearer("account")


def test_an_address_of_version_6_is_put_in_brackets(account: Path):
    environ = {**POD_ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    config = in_cluster(CLOCK, environ=environ, service_account_dir=str(account))
    assert config.server == "https://[fd00::1]:443"


def test_a_missing_authority_is_only_logged(account: Path, caplog: pytest.LogCaptureFixture):
    (account / "ca.crt").unlink()
    with caplog.at_level(logging.ERROR):
        config = in_cluster(CLOCK, environ=POD_ENVIRONMENT, service_account_dir=str(account))
    assert config.tls.ca_file == ""
    assert "expected the certificate authority" in caplog.text


def test_a_file_or_a_master_takes_precedence_over_the_pod(account: Path):
    path = write(account, user={"token": "t"})
    found = find_server(CLOCK, kubeconfig=path, environ=POD_ENVIRONMENT)
    assert found.server == "https://one:6443"
    assert find_server(CLOCK, master="http://m:1", environ=POD_ENVIRONMENT).server == "http://m:1"


@pytest.mark.parametrize(
    "environ", [pytest.param({}, id="no-pod"), pytest.param(POD_ENVIRONMENT, id="no-token")]
)
def test_outside_of_a_pod_only_the_environment_is_left(
    tmp_path: Path, environ: dict[str, str], caplog: pytest.LogCaptureFixture
):
    folder = str(tmp_path)
    with pytest.raises(ConfigError, match="no configuration has been provided, try setting"):
        find_server(CLOCK, environ=environ, service_account_dir=folder)
    assert "neither --kubeconfig nor --master was given" in caplog.text
    environ = {**environ, "KUBERNETES_MASTER": "https://m:2"}
    assert find_server(CLOCK, environ=environ, service_account_dir=folder).server == "https://m:2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("users:\n  " + "[" * 100_000, r"at line 2: nested more than 150", id="deep"),
        pytest.param("a: &a [*a]", "at line 1: an alias must not contain itself", id="circular"),
        pytest.param("users: 2024-99-99", "is not valid", id="no-date"),
        pytest.param("users: !!int hush", "is not YAML at line 1", id="not-its-tag"),
        pytest.param("a: 1\n---\nb: 2", "has 2 documents, expected one", id="two-documents"),
    ],
)
def test_a_file_that_stands_for_too_much_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load(str(path))
    assert "hush" not in str(caught.value)


def test_the_namespace_of_a_context(tmp_path: Path):
    path = tmp_path / "config"
    contexts = [
        {"name": "one", "context": {"cluster": "c", "namespace": "shop"}},
        {"name": "two", "context": {"cluster": "c"}},
    ]
    path.write_text(yaml.safe_dump({"current-context": "one", "contexts": contexts}))
    assert context_namespace([str(path)]) == "shop"
    assert context_namespace([str(path)], "two") == ""
    with pytest.raises(ConfigError, match='has no context "three"; it has "one", "two"'):
        context_namespace([str(path)], "three")


def test_files_that_kubectl_reads(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    two.touch()
    environ = {"KUBECONFIG": f"{one}:{two}:"}
    assert default_kubeconfigs(environ) == [str(two)]
    one.touch()
    assert default_kubeconfigs(environ) == [str(one), str(two)]


def test_of_several_files_the_first_counts(tmp_path: Path):
    """Entries of both are found, and their paths are relative to the folder of each."""
    one, two = tmp_path / "one" / "config", tmp_path / "two" / "config"
    for path, server in ((one, "https://one"), (two, "https://two")):
        path.parent.mkdir()
        shared = {"name": "shared", "cluster": {"server": server, "certificate-authority": "ca"}}
        own = {"name": server[8:], "context": {"cluster": "shared", "user": "u"}}
        user = {"name": "u", "user": {"client-key": "key", "client-certificate": "crt"}}
        document = {"clusters": [shared], "contexts": [own]}
        path.write_text(yaml.safe_dump(document | ({"users": [user]} if path == two else {})))
    paths = [str(one), str(two)]
    found = load_kubeconfigs(paths, CLOCK, context="two", environ={})
    assert found.server == "https://one"
    assert found.tls.ca_file == str(tmp_path / "one" / "ca")
    assert found.tls.key_file == str(tmp_path / "two" / "key")
    with pytest.raises(ConfigError, match=r'one/config", ".*two/config" has no current-context'):
        load_kubeconfigs(paths, CLOCK, environ={})
