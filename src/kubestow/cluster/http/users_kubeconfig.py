"""The cluster that kubectl would talk to, for commands that people use."""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from kubestow.clock import Clock
from kubestow.cluster.http.kubeconfig import (
    ServerConfig,
    context_namespace,
    default_kubeconfigs,
    in_cluster,
    load_kubeconfigs,
)
from kubestow.errors import ConfigError

DEFAULT_NAMESPACE: Final = "default"


class Kubeconfig:
    """The file and context that the command line names, or what kubectl reads without an option.

    That is all files of $KUBECONFIG together, or ~/.kube/config; inside a pod without either, the
    service account.
    """

    def __init__(
        self,
        path: str,
        context: str,
        *,
        instead: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`instead` is what else a user can do if there is no kubeconfig."""
        self._paths = [path] if path else default_kubeconfigs(environ)
        self._context = context
        self._instead = instead
        self._environ = environ

    @property
    def namespace(self) -> str:
        """The namespace of pods that are named without one."""
        if not self._paths:
            return DEFAULT_NAMESPACE
        return context_namespace(self._paths, self._context) or DEFAULT_NAMESPACE

    def server(self, clock: Clock) -> ServerConfig:
        """The API server; ConfigError if none is configured."""
        return self._server(clock)

    def scheduler(self, address: str, clock: Clock, *, skips_verification: bool) -> ServerConfig:
        """A scheduler at this address, with the credentials of the context."""
        server = self._server(clock, master=address)
        if not skips_verification:
            return server
        tls = msgspec.structs.replace(server.tls, ca_file="", ca_data=b"", skips_verification=True)
        return msgspec.structs.replace(server, tls=tls)

    def _server(self, clock: Clock, *, master: str = "") -> ServerConfig:
        environ = self._environ
        if self._paths:
            return load_kubeconfigs(
                self._paths, clock, context=self._context, master=master, environ=environ
            )
        try:
            server = in_cluster(clock, environ=environ)
        except ConfigError as error:
            raise ConfigError(
                "there is no kubeconfig: neither $KUBECONFIG nor ~/.kube/config; name one with "
                f"--kubeconfig{self._instead}"
            ) from error
        return msgspec.structs.replace(server, server=master) if master else server
