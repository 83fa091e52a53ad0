"""One extender behind a URL (spec 04 §13.1, §13.2)."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cluster.http.proxy import proxy_from_environment
from kubestow.cluster.http.tls import TlsContexts, TlsSettings
from kubestow.config.extenders import ExtenderConfig, ExtenderTLSConfig, in_call_order
from kubestow.engine.extenders.chain import (
    ExtenderChain,
    FilterAnswer,
    HostScore,
    Wait,
    wait_blocking,
)
from kubestow.engine.extenders.codec import (
    decode_bind_answer,
    decode_filter_answer,
    decode_preempt_answer,
    decode_prioritize_answer,
    encode_bind_request,
    encode_nodes_request,
    encode_preempt_request,
)
from kubestow.engine.extenders.post import OK, Post, post_json
from kubestow.errors import ConfigError, ExtenderError
from kubestow.framework.extender import MetaVictims, Victims
from kubestow.redaction import without_secrets

# Enough for thousands of nodes as whole objects; an endless answer must not fill the memory.
ANSWER_BYTES_MAX: Final = 256 * 2**20


def extender_chain(
    configs: Iterable[ExtenderConfig],
    *,
    rng: np.random.Generator,
    in_thread: bool = True,
    wait: Wait = wait_blocking,
) -> ExtenderChain | None:
    """The extenders of a configuration in the order they are called; None if there are none.

    `in_thread`: bindings block a thread. Not in virtual time, which would not wait for it. `wait`
    returns the result of an answer in a scheduling cycle.
    """
    try:
        extenders = [HttpExtender(config, wait=wait) for config in in_call_order(configs)]
    except ConfigError as error:
        raise ConfigError(f"couldn't build extenders: {error}") from error
    if not extenders:
        return None
    if in_thread:
        return ExtenderChain(extenders, rng=rng, wait=wait)
    return ExtenderChain(extenders, rng=rng, wait=wait, run_blocking=run_inline)


async def run_inline(call: Callable[[], None]) -> None:
    call()


class HttpExtender:
    """Implements `Extender`. Every call is one request, without a retry."""

    def __init__(
        self,
        config: ExtenderConfig,
        *,
        environ: Mapping[str, str] = os.environ,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        wait: Wait = wait_blocking,
    ) -> None:
        self._config = config
        self._environ = environ
        self._answer_bytes_max = answer_bytes_max
        self._wait = wait
        # A simulation replaces it: the network is not in virtual time.
        self.post: Post = post_json
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._tls = TlsContexts(_tls_settings(config))
        if config.url_prefix.startswith("https:"):
            self._tls.current()  # Unusable certificates must fail at start-up.

    @property
    def name(self) -> str:
        return without_secrets(self._config.url_prefix)

    @property
    def weight(self) -> int:
        return self._config.weight

    @property
    def is_ignorable(self) -> bool:
        return self._config.ignorable

    @property
    def has_filter_verb(self) -> bool:
        return bool(self._config.filter_verb)

    @property
    def has_prioritize_verb(self) -> bool:
        return bool(self._config.prioritize_verb)

    @property
    def has_bind_verb(self) -> bool:
        return bool(self._config.bind_verb)

    @property
    def has_preempt_verb(self) -> bool:
        return bool(self._config.preempt_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Whether some container names a managed resource, in any amount."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts or ())
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        takes_names = self._config.node_cache_capable
        request = encode_nodes_request(pod, nodes, names_only=takes_names)
        answer = self._send(self._config.filter_verb, request)
        return decode_filter_answer(answer, takes_names=takes_names)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[HostScore]:
        request = encode_nodes_request(pod, nodes, names_only=self._config.node_cache_capable)
        return decode_prioritize_answer(self._send(self._config.prioritize_verb, request))

    def bind(self, pod: Pod, node_name: str) -> None:
        request = encode_bind_request(pod, node_name)
        decode_bind_answer(self._send(self._config.bind_verb, request))

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
        uids_only = self._config.node_cache_capable
        request = encode_preempt_request(pod, victims, uids_only=uids_only)
        return decode_preempt_answer(self._send(self._config.preempt_verb, request))

    def _send(self, verb: str, body: bytes) -> bytes:
        url = f"{self._config.url_prefix.rstrip('/')}/{verb}"
        try:
            proxy = proxy_from_environment(url, self._environ)
        except ConfigError as error:
            raise ExtenderError(f'Post "{without_secrets(url)}": {error}') from error
        answer = self._wait(
            self.post(
                url,
                body,
                timeout_s=self._config.timeout_s,
                body_bytes_max=self._answer_bytes_max,
                tls=self._tls,
                proxy=proxy,
            )
        )
        if answer.code != OK:
            raise ExtenderError(self._refusal(verb, url, answer.code))
        return answer.body

    def _refusal(self, verb: str, url: str, code: int) -> str:
        return f"failed {verb} with extender at URL {without_secrets(url)}, code {code}"


def _tls_settings(config: ExtenderConfig) -> TlsSettings:
    tls = config.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_file or tls.ca_data)
    if has_authority and tls.insecure:
        raise ConfigError(
            "specifying a root certificates file with the insecure flag is not allowed"
        )
    return TlsSettings(
        ca_file=tls.ca_file,
        ca_data=tls.ca_data,
        certificate_file=tls.cert_file,
        certificate_data=tls.cert_data,
        key_file=tls.key_file,
        key_data=tls.key_data,
        server_name=tls.server_name,
        skips_verification=tls.insecure or (config.enable_https and not has_authority),
    )
