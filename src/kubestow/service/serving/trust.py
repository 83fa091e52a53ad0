"""Which client certificates and proxies are trusted: by flags, else as the cluster (spec 09 §7).

The API server publishes its own settings in a config map, so that a component with the same
authorities needs no flags. It is read again every few minutes, since authorities are replaced.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.errors import ApiError, ConfigError
from kubestow.logs import warn
from kubestow.service.connections import ReviewClient
from kubestow.service.options import AuthenticationOptions
from kubestow.service.serving.authentication import (
    Authenticator,
    RequestHeaderSettings,
    TrustSettings,
)

log = logging.getLogger(__name__)

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_NO_KUBECONFIG: Final = (
    "No authentication-kubeconfig provided in order to lookup %s in "
    "configmap/extension-apiserver-authentication in kube-system, so %s won't work."
)
REFRESH_S: Final = 300.0


class TrustLookup:
    """Keeps an authenticator's trust up to date."""

    def __init__(
        self,
        options: AuthenticationOptions,
        client: ReviewClient | None,
        authenticator: Authenticator,
    ) -> None:
        """Raises ConfigError if a file of the options cannot be read."""
        self._options = options
        self._client = None if options.skip_lookup else client
        self._authenticator = authenticator
        self._given = _from_options(options)
        authenticator.trust = self._given

    async def refresh(self) -> None:
        """Read the config map; ConfigError if that fails and a failure is not tolerated."""
        if self._client is None:
            self._warn_of_lookup()
            return
        try:
            answer = await self._client.get_document(CONFIG_MAP)
        except ApiError as error:
            if not self._options.tolerate_lookup_failure:
                raise ConfigError(
                    "unable to load configmap based request-header-client-ca-file: " + str(error)
                ) from error
            warn(
                log,
                "Error looking up in-cluster authentication configuration; client certificates "
                "and request headers are not accepted",
                err=error,
            )
            return
        data: JsonObject = answer.get("data") or {}
        self._authenticator.trust = combined(self._given, from_config_map(data))

    def _warn_of_lookup(self) -> None:
        """Requests with good credentials count as anonymous then."""
        if self._options.skip_lookup:
            return
        if not self._given.client_authorities:
            log.warning(_NO_KUBECONFIG, "client-ca-file", "client certificate authentication")
        if not self._given.request_header.authorities:
            what = "request-header client certificate authentication"
            log.warning(_NO_KUBECONFIG, "requestheader-client-ca-file", what)

    async def run(self) -> None:
        """Refresh every few minutes until cancelled."""
        while self._client is not None:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.refresh()
            except ConfigError as error:
                # A running scheduler goes on with the last settings.
                warn(log, "cannot refresh the authentication configuration", err=error)


def from_config_map(data: JsonObject) -> TrustSettings:
    """The settings the API server publishes; a broken one counts as absent."""
    return TrustSettings(
        client_authorities=str(data.get("client-ca-file", "")).encode(),
        request_header=RequestHeaderSettings(
            authorities=str(data.get("requestheader-client-ca-file", "")).encode(),
            allowed_names=_listed(data, "requestheader-allowed-names"),
            usernames=_listed(data, "requestheader-username-headers"),
            uids=_listed(data, "requestheader-uid-headers"),
            groups=_listed(data, "requestheader-group-headers"),
            extra_prefixes=_listed(data, "requestheader-extra-headers-prefix"),
        ),
    )


def combined(given: TrustSettings, found: TrustSettings) -> TrustSettings:
    """Flags take precedence over the cluster."""
    return TrustSettings(
        client_authorities=given.client_authorities or found.client_authorities,
        request_header=given.request_header
        if given.request_header.authorities
        else found.request_header,
    )


def _from_options(options: AuthenticationOptions) -> TrustSettings:
    return TrustSettings(
        client_authorities=_file(options.client_ca_file, "--client-ca-file"),
        request_header=RequestHeaderSettings(
            authorities=_file(
                options.requestheader_client_ca_file, "--requestheader-client-ca-file"
            ),
            allowed_names=options.requestheader_allowed_names,
            usernames=options.requestheader_usernames,
            uids=options.requestheader_uids,
            groups=options.requestheader_groups,
            extra_prefixes=options.requestheader_extra_prefixes,
        ),
    )


def _file(path: str, flag: str) -> bytes:
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f'cannot read {flag} "{path}": {error.strerror}') from error


def _listed(data: JsonObject, key: str) -> tuple[str, ...]:
    """A list of strings, encoded as JSON in one string."""
    try:
        return tuple(msgspec.json.decode(data.get(key) or "[]", type=list[str]))
    except msgspec.DecodeError:
        return ()
