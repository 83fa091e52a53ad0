"""Server and credentials, from a kubeconfig or from inside a cluster (spec 09 §4.1).

The service reads only the file it is given: `KUBECONFIG` and the home directory are for commands
that people use (`default_kubeconfigs`). Without a file and without a server's URL it looks for the
service account of the pod it runs in.

Paths in a kubeconfig are relative to its folder.
"""

import base64
import binascii
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import yaml

from kubestow.api.decode import is_list, is_map
from kubestow.api.meta import JsonObject
from kubestow.api.yaml_text import YamlSizeError, value_of, yaml_nodes
from kubestow.clock import Clock
from kubestow.cluster.http.credentials import (
    Credentials,
    ExecPlugin,
    ExecSettings,
    FixedCredentials,
    Headers,
    TokenFile,
    basic,
    bearer,
)
from kubestow.cluster.http.proxy import Proxy, endpoint_of, parse_proxy, proxy_from_environment
from kubestow.cluster.http.tls import TlsSettings
from kubestow.errors import ConfigError

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# The extension of a kubeconfig's cluster that is meant for credential plugins.
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to connect to one API server."""

    server: str  # URL without a slash at its end
    tls: TlsSettings = TlsSettings()
    credentials: Credentials = FixedCredentials()
    impersonation: Headers = ()
    proxy: Proxy | None = None


def find_server(
    clock: Clock,
    *,
    kubeconfig: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account_dir: str = SERVICE_ACCOUNT_DIR,
) -> ServerConfig:
    """The server the service connects to; ConfigError says what is missing."""
    if kubeconfig:
        return load_kubeconfig(kubeconfig, clock, master=master, environ=environ)
    if not master:
        try:
            return in_cluster(clock, environ=environ, service_account_dir=service_account_dir)
        except ConfigError as error:
            logger.warning(
                "neither --kubeconfig nor --master was given, and %s; falling back to the"
                " environment",
                error,
            )
        master = environ.get("KUBERNETES_MASTER", "")
    if not master:
        raise ConfigError(
            "invalid configuration: no configuration has been provided, try setting"
            " KUBERNETES_MASTER environment variable"
        )
    return ServerConfig(server=_server_url(master), proxy=_environment_proxy(master, environ))


def in_cluster(
    clock: Clock,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account_dir: str = SERVICE_ACCOUNT_DIR,
) -> ServerConfig:
    """The server of the cluster this process runs in, as its pod's service account."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "this is no pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must"
            " be defined"
        )
    folder = Path(service_account_dir)
    token_path = folder / "token"
    if not token_path.is_file():
        raise ConfigError(f'this pod has no service account: there is no file "{token_path}"')
    ca_path = folder / "ca.crt"
    if not ca_path.is_file():
        logger.error('expected the certificate authority of the cluster in "%s"', ca_path)
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return ServerConfig(
        server=server,
        tls=TlsSettings(ca_file=str(ca_path) if ca_path.is_file() else ""),
        credentials=TokenFile(str(token_path), clock),
        proxy=_environment_proxy(server, environ),
    )


def load_kubeconfig(
    path: str,
    clock: Clock,
    *,
    context: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
) -> ServerConfig:
    """The server and user of a kubeconfig's context, by default of its current one."""
    config = _read(path)
    found = _context(config, context, path)
    cluster = _named(config.clusters, found.cluster, "cluster", path).cluster
    user = _named(config.users, found.user, "user", path).user if found.user else _User()
    return _Reader(Path(path), clock, environ).server_config(cluster, user, found.user, master)


def context_namespace(path: str, context: str = "") -> str:
    """The namespace that a kubeconfig's context names; empty if it names none."""
    return _context(_read(path), context, path).namespace


def default_kubeconfigs(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The files that kubectl reads without an option, those that exist."""
    named = environ.get("KUBECONFIG", "")
    paths = named.split(os.pathsep) if named else ["~/.kube/config"]
    expanded = [os.path.expanduser(path) for path in paths if path]
    return [path for path in expanded if os.path.isfile(path)]


# --- The file ---------------------------------------------------------------------------------


class _Kebab(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of the entries of a kubeconfig."""


class _Extension(_Kebab, frozen=True, kw_only=True):
    name: str = ""
    extension: Any = None  # for the plugin alone


class _Cluster(_Kebab, frozen=True, kw_only=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[_Extension, ...] | None = None


class _EnvVar(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[_EnvVar, ...] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class _User(_Kebab, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonated: str = msgspec.field(default="", name="as")
    impersonated_uid: str = msgspec.field(default="", name="as-uid")
    impersonated_groups: tuple[str, ...] | None = msgspec.field(default=None, name="as-groups")
    impersonated_extra: dict[str, tuple[str, ...]] | None = msgspec.field(
        default=None, name="as-user-extra"
    )
    exec: _Exec | None = None
    auth_provider: JsonObject | None = None


class _Context(_Kebab, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Named(_Kebab, frozen=True, kw_only=True):
    name: str


class _NamedCluster(_Named, frozen=True, kw_only=True):
    cluster: _Cluster = _Cluster()


class _NamedUser(_Named, frozen=True, kw_only=True):
    user: _User = _User()


class _NamedContext(_Named, frozen=True, kw_only=True):
    context: _Context = _Context()


_Entry = TypeVar("_Entry", bound=_Named)


class _Kubeconfig(_Kebab, frozen=True, kw_only=True):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


def _context(config: _Kubeconfig, context: str, path: str) -> _Context:
    chosen = context or config.current_context
    if not chosen:
        raise ConfigError(f'kubeconfig "{path}" has no current-context; name one of its contexts')
    return _named(config.contexts, chosen, "context", path).context


def _read(path: str) -> _Kubeconfig:
    try:
        document = _document_in(Path(path).read_bytes())
    except OSError as error:
        raise ConfigError(f'cannot read the kubeconfig "{path}": {error.strerror}') from error
    except yaml.YAMLError as error:
        # The text around the error may be a secret; the line number is enough.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        if isinstance(error, YamlSizeError):
            raise ConfigError(f'the kubeconfig "{path}"{where}: {error.problem}') from error
        raise ConfigError(f'the kubeconfig "{path}" is not YAML{where}') from error
    try:
        return msgspec.convert(_without_nulls(document or {}), _Kubeconfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f'the kubeconfig "{path}" is not valid: {error}') from error


def _document_in(raw: bytes) -> object:
    values = [value_of(node, loader) for node, loader in yaml_nodes(raw)]
    if len(values) > 1:
        raise yaml.YAMLError("expected a single document")
    return values[0] if values else None


def _without_nulls(value: object) -> object:
    """An empty entry means the same as none."""
    if is_map(value):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if is_list(value):
        return [_without_nulls(item) for item in value]
    return value


def _named(entries: tuple[_Entry, ...], name: str, what: str, path: str) -> _Entry:
    for entry in entries:
        if entry.name == name:
            return entry
    known = ", ".join(f'"{entry.name}"' for entry in entries) or "none"
    raise ConfigError(f'kubeconfig "{path}" has no {what} "{name}"; it has {known}')


# --- Entries to a ServerConfig ----------------------------------------------------------------


class _Reader:
    """Turns the entries of one kubeconfig into a `ServerConfig`."""

    def __init__(self, path: Path, clock: Clock, environ: Mapping[str, str]) -> None:
        self._path = path
        self._clock = clock
        self._environ = environ

    def server_config(
        self, cluster: _Cluster, user: _User, user_name: str, master: str
    ) -> ServerConfig:
        server = _server_url(master or cluster.server)
        proxy = (
            parse_proxy(cluster.proxy_url)
            if cluster.proxy_url
            else _environment_proxy(server, self._environ)
        )
        return ServerConfig(
            server=server,
            tls=self._tls(cluster, user),
            credentials=self._credentials(cluster, user, user_name, server),
            impersonation=_impersonation(user),
            proxy=proxy,
        )

    def _tls(self, cluster: _Cluster, user: _User) -> TlsSettings:
        return TlsSettings(
            ca_file=self._absolute(cluster.certificate_authority),
            ca_data=self._decoded(cluster.certificate_authority_data, "certificate-authority-data"),
            certificate_file=self._absolute(user.client_certificate),
            certificate_data=self._decoded(user.client_certificate_data, "client-certificate-data"),
            key_file=self._absolute(user.client_key),
            key_data=self._decoded(user.client_key_data, "client-key-data"),
            server_name=cluster.tls_server_name,
            skips_verification=cluster.insecure_skip_tls_verify,
        )

    def _credentials(
        self, cluster: _Cluster, user: _User, user_name: str, server: str
    ) -> Credentials:
        if user.auth_provider is not None:
            raise ConfigError(
                f'user "{user_name}" of kubeconfig "{self._path}" has an auth-provider, which is no'
                " longer supported; use an exec plugin or a token"
            )
        if user.exec is not None:
            settings = self._exec_settings(user.exec, cluster, server)
            return ExecPlugin(settings, self._clock, environ=self._environ)
        if user.token_file:
            path = self._absolute(user.token_file)
            return TokenFile(path, self._clock, fallback=user.token)
        if user.token:
            return FixedCredentials(bearer(user.token))
        if user.username:
            return FixedCredentials(basic(user.username, user.password))
        return FixedCredentials()

    def _exec_settings(self, found: _Exec, cluster: _Cluster, server: str) -> ExecSettings:
        # A bare name is looked up in PATH; anything with a slash is a path like the others here.
        command = self._absolute(found.command) if "/" in found.command else found.command
        return ExecSettings(
            command=command,
            args=found.args or (),
            env=tuple((entry.name, entry.value) for entry in found.env or ()),
            api_version=found.api_version,
            install_hint=found.install_hint,
            interactive_mode=found.interactive_mode,
            cluster=self._cluster_info(cluster, server) if found.provide_cluster_info else None,
        )

    def _cluster_info(self, cluster: _Cluster, server: str) -> JsonObject:
        """The cluster as a plugin gets it."""
        info: JsonObject = {"server": server}
        if cluster.tls_server_name:
            info["tls-server-name"] = cluster.tls_server_name
        if cluster.insecure_skip_tls_verify:
            info["insecure-skip-tls-verify"] = True
        if cluster.certificate_authority_data:
            info["certificate-authority-data"] = cluster.certificate_authority_data
        elif cluster.certificate_authority:
            text = self._file(self._absolute(cluster.certificate_authority))
            info["certificate-authority-data"] = base64.b64encode(text).decode()
        if cluster.proxy_url:
            info["proxy-url"] = cluster.proxy_url
        for extension in cluster.extensions or ():
            if extension.name == _EXEC_EXTENSION:
                info["config"] = extension.extension
        return info

    def _file(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise ConfigError(f'cannot read "{path}": {error.strerror}') from error

    def _absolute(self, path: str) -> str:
        return str(self._path.parent / path) if path else ""

    def _decoded(self, data: str, field: str) -> bytes:
        try:
            return base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f'{field} of kubeconfig "{self._path}" is not base64') from error


def _server_url(server: str) -> str:
    server = server.rstrip("/")
    if "://" not in server and server:
        server = f"http://{server}"
    endpoint_of(server)  # raises ConfigError if it is no URL
    return server


def _impersonation(user: _User) -> Headers:
    if not user.impersonated:
        return ()
    headers = [("Impersonate-User", user.impersonated)]
    if user.impersonated_uid:
        headers.append(("Impersonate-Uid", user.impersonated_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonated_groups or ()]
    for key, values in (user.impersonated_extra or {}).items():
        headers += [(f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for value in values]
    return tuple(headers)


def _environment_proxy(server: str, environ: Mapping[str, str]) -> Proxy | None:
    return proxy_from_environment(_server_url(server), environ)
