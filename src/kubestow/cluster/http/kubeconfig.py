"""Server and credentials, from a kubeconfig or from inside a cluster (spec 09 §4.1).

The service reads only the file it is given: `KUBECONFIG` and the home directory are for commands
that people use (`default_kubeconfigs`). Without a file and without a server's URL it looks for the
service account of the pod it runs in.

Not here: the entries of the files (`kubeconfig_files`).
"""

import base64
import binascii
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from kubestow.api.meta import JsonObject
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
from kubestow.cluster.http.kubeconfig_files import (
    ChosenContext,
    ClusterEntry,
    ExecEntry,
    KubeconfigFiles,
    UserEntry,
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
    return load_kubeconfigs([path], clock, context=context, master=master, environ=environ)


def load_kubeconfigs(
    paths: Sequence[str],
    clock: Clock,
    *,
    context: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
) -> ServerConfig:
    """The server and user of a context in several files, which count as one as for kubectl."""
    files = KubeconfigFiles(paths)
    return _Reader(files.name, clock, environ).server_config(files.choose(context), master)


def context_namespace(paths: Sequence[str], context: str = "") -> str:
    """The namespace that a context of kubeconfigs names; empty if it names none."""
    return KubeconfigFiles(paths).context(context).namespace


def default_kubeconfigs(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The files that kubectl reads without an option, those that exist."""
    named = environ.get("KUBECONFIG", "")
    home = environ.get("HOME") or os.path.expanduser("~")
    paths = named.split(os.pathsep) if named else [os.path.join(home, ".kube", "config")]
    return [path for path in map(os.path.expanduser, paths) if os.path.isfile(path)]


# --- Entries to a ServerConfig ----------------------------------------------------------------


class _Reader:
    """Turns entries of kubeconfigs into a `ServerConfig`; `name` is that of the files in errors."""

    def __init__(self, name: str, clock: Clock, environ: Mapping[str, str]) -> None:
        self._name = name
        self._clock = clock
        self._environ = environ

    def server_config(self, chosen: ChosenContext, master: str) -> ServerConfig:
        cluster, user, user_name = chosen.cluster, chosen.user, chosen.context.user
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

    def _tls(self, cluster: ClusterEntry, user: UserEntry) -> TlsSettings:
        return TlsSettings(
            ca_file=cluster.certificate_authority,
            ca_data=self._decoded(cluster.certificate_authority_data, "certificate-authority-data"),
            certificate_file=user.client_certificate,
            certificate_data=self._decoded(user.client_certificate_data, "client-certificate-data"),
            key_file=user.client_key,
            key_data=self._decoded(user.client_key_data, "client-key-data"),
            server_name=cluster.tls_server_name,
            skips_verification=cluster.insecure_skip_tls_verify,
        )

    def _credentials(
        self, cluster: ClusterEntry, user: UserEntry, user_name: str, server: str
    ) -> Credentials:
        if user.auth_provider is not None:
            raise ConfigError(
                f'user "{user_name}" of kubeconfig {self._name} has an auth-provider, which is no'
                " longer supported; use an exec plugin or a token"
            )
        if user.exec is not None:
            settings = self._exec_settings(user.exec, cluster, server)
            return ExecPlugin(settings, self._clock, environ=self._environ)
        if user.token_file:
            return TokenFile(user.token_file, self._clock, fallback=user.token)
        if user.token:
            return FixedCredentials(bearer(user.token))
        if user.username:
            return FixedCredentials(basic(user.username, user.password))
        return FixedCredentials()

    def _exec_settings(self, found: ExecEntry, cluster: ClusterEntry, server: str) -> ExecSettings:
        return ExecSettings(
            command=found.command,
            args=found.args or (),
            env=tuple((entry.name, entry.value) for entry in found.env or ()),
            api_version=found.api_version,
            install_hint=found.install_hint,
            interactive_mode=found.interactive_mode,
            cluster=self._cluster_info(cluster, server) if found.provide_cluster_info else None,
        )

    def _cluster_info(self, cluster: ClusterEntry, server: str) -> JsonObject:
        """The cluster as a plugin gets it."""
        info: JsonObject = {"server": server}
        if cluster.tls_server_name:
            info["tls-server-name"] = cluster.tls_server_name
        if cluster.insecure_skip_tls_verify:
            info["insecure-skip-tls-verify"] = True
        if cluster.certificate_authority_data:
            info["certificate-authority-data"] = cluster.certificate_authority_data
        elif cluster.certificate_authority:
            text = self._file(cluster.certificate_authority)
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

    def _decoded(self, data: str, field: str) -> bytes:
        try:
            return base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{field} of kubeconfig {self._name} is not base64") from error


def _server_url(server: str) -> str:
    server = server.rstrip("/")
    if "://" not in server and server:
        server = f"http://{server}"
    endpoint_of(server)  # raises ConfigError if it is no URL
    return server


def _impersonation(user: UserEntry) -> Headers:
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
