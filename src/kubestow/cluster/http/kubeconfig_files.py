"""The entries of kubeconfig files, several of them merged as kubectl does it.

Paths in a file are relative to its folder; after reading they are absolute, so that it does not
matter which file an entry came from.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kubestow.api.decode import is_list, is_map
from kubestow.api.meta import JsonObject
from kubestow.api.yaml_text import YamlSizeError, value_of, yaml_nodes
from kubestow.errors import ConfigError
from kubestow.files.reading import read_file


class _Kebab(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of the entries of a kubeconfig."""


class _Extension(_Kebab, frozen=True, kw_only=True):
    name: str = ""
    extension: Any = None  # for the plugin alone


class ClusterEntry(_Kebab, frozen=True, kw_only=True):
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


class ExecEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[_EnvVar, ...] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class UserEntry(_Kebab, frozen=True, kw_only=True):
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
    exec: ExecEntry | None = None
    auth_provider: JsonObject | None = None


class ContextEntry(_Kebab, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Named(_Kebab, frozen=True, kw_only=True):
    name: str


class _NamedCluster(_Named, frozen=True, kw_only=True):
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(_Named, frozen=True, kw_only=True):
    user: UserEntry = UserEntry()


class _NamedContext(_Named, frozen=True, kw_only=True):
    context: ContextEntry = ContextEntry()


_Entry = TypeVar("_Entry", bound=_Named)


class KubeconfigEntries(_Kebab, frozen=True, kw_only=True):
    """One file, or several as one; all paths are absolute."""

    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


class ChosenContext(msgspec.Struct, frozen=True):
    """A context with its cluster and its user."""

    context: ContextEntry
    cluster: ClusterEntry
    user: UserEntry


class KubeconfigFiles:
    """Files that count as one: of entries with the same name, the one of the first file."""

    def __init__(self, paths: Sequence[str]) -> None:
        """ConfigError says what cannot be read."""
        self.name = ", ".join(f'"{path}"' for path in paths)
        files = [_read(path) for path in paths]
        current = [each.current_context for each in files if each.current_context]
        self._merged = KubeconfigEntries(
            current_context=current[0] if current else "",
            clusters=tuple(entry for each in files for entry in each.clusters),
            users=tuple(entry for each in files for entry in each.users),
            contexts=tuple(entry for each in files for entry in each.contexts),
        )

    def context(self, name: str) -> ContextEntry:
        """The context of this name, by default the current one."""
        chosen = name or self._merged.current_context
        if not chosen:
            raise ConfigError(
                f"kubeconfig {self.name} has no current-context; name one of its contexts"
            )
        return self._named(self._merged.contexts, chosen, "context").context

    def choose(self, context_name: str) -> ChosenContext:
        merged, context = self._merged, self.context(context_name)
        cluster = self._named(merged.clusters, context.cluster, "cluster").cluster
        user = self._named(merged.users, context.user, "user").user if context.user else UserEntry()
        return ChosenContext(context, cluster, user)

    def _named(self, entries: tuple[_Entry, ...], name: str, what: str) -> _Entry:
        for entry in entries:
            if entry.name == name:
                return entry
        known = ", ".join(f'"{entry.name}"' for entry in entries) or "none"
        raise ConfigError(f'kubeconfig {self.name} has no {what} "{name}"; it has {known}')


def _read(path: str) -> KubeconfigEntries:
    try:
        documents = _documents_in(read_file(path))
    except OSError as error:
        raise ConfigError(f'cannot read the kubeconfig "{path}": {error.strerror}') from error
    except yaml.YAMLError as error:
        # The text around the error may be a secret; the line number is enough.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        if isinstance(error, YamlSizeError):
            raise ConfigError(f'the kubeconfig "{path}"{where}: {error.problem}') from error
        raise ConfigError(f'the kubeconfig "{path}" is not YAML{where}') from error
    if len(documents) > 1:
        raise ConfigError(f'the kubeconfig "{path}" has {len(documents)} documents, expected one')
    try:
        document = documents[0] if documents else None
        config = msgspec.convert(_without_nulls(document or {}), KubeconfigEntries)
    except msgspec.ValidationError as error:
        raise ConfigError(f'the kubeconfig "{path}" is not valid: {error}') from error
    return _with_absolute_paths(config, Path(path).parent)


def _documents_in(raw: bytes) -> list[object]:
    return [value_of(node, loader) for node, loader in yaml_nodes(raw)]


def _without_nulls(value: object) -> object:
    """An empty entry means the same as none."""
    if is_map(value):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if is_list(value):
        return [_without_nulls(item) for item in value]
    return value


def _with_absolute_paths(config: KubeconfigEntries, folder: Path) -> KubeconfigEntries:
    def absolute(path: str) -> str:
        return str(folder / path) if path else ""

    def of_cluster(entry: _NamedCluster) -> _NamedCluster:
        ca_file = absolute(entry.cluster.certificate_authority)
        cluster = msgspec.structs.replace(entry.cluster, certificate_authority=ca_file)
        return msgspec.structs.replace(entry, cluster=cluster)

    def of_user(entry: _NamedUser) -> _NamedUser:
        user, plugin = entry.user, entry.user.exec
        # A bare name is looked up in PATH; anything with a slash is a path like the others here.
        if plugin is not None and "/" in plugin.command:
            plugin = msgspec.structs.replace(plugin, command=absolute(plugin.command))
        located = msgspec.structs.replace(
            user,
            client_certificate=absolute(user.client_certificate),
            client_key=absolute(user.client_key),
            token_file=absolute(user.token_file),
            exec=plugin,
        )
        return msgspec.structs.replace(entry, user=located)

    return msgspec.structs.replace(
        config,
        clusters=tuple(of_cluster(entry) for entry in config.clusters),
        users=tuple(of_user(entry) for entry in config.users),
    )
