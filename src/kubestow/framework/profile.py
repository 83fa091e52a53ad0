"""A profile: which plugins run at which point, in which order and weight (spec 04 §2.5)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

from kubestow.cache.node_info import NodeInfo
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    BindPlugin,
    FilterPlugin,
    GroupPostFilterPlugin,
    NormalizePlacementsPlugin,
    NormalizePlugin,
    PermitPlugin,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PodGroupPostFilterPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    RepeatedPostFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    SignPlugin,
)
from kubestow.framework.reuse import AskRule, FinalScores, Reuse, reuse_of

P = TypeVar("P")

MAX_INT64: Final = 2**63 - 1

# Field of `Plugins`, the type name upstream prints, and what a plugin must implement, in
# upstream's order.
_POINTS: Final[Sequence[tuple[str, str, type]]] = (
    ("pre_filter", "PreFilterPlugin", PreFilterPlugin),
    ("filter", "FilterPlugin", FilterPlugin),
    ("post_filter", "PostFilterPlugin", PostFilterPlugin),
    ("reserve", "ReservePlugin", ReservePlugin),
    ("pre_score", "PreScorePlugin", PreScorePlugin),
    ("score", "ScorePlugin", ScorePlugin),
    ("pre_bind", "PreBindPlugin", PreBindPlugin),
    ("bind", "BindPlugin", BindPlugin),
    ("post_bind", "PostBindPlugin", PostBindPlugin),
    ("permit", "PermitPlugin", PermitPlugin),
    ("pre_enqueue", "PreEnqueuePlugin", PreEnqueuePlugin),
    ("queue_sort", "QueueSortPlugin", QueueSortPlugin),
    ("placement_generate", "PlacementGeneratePlugin", PlacementGeneratePlugin),
    ("placement_score", "PlacementScorePlugin", PlacementScorePlugin),
    ("pod_group_post_filter", "PodGroupPostFilterPlugin", PodGroupPostFilterPlugin),
)


# One plugin's answer about one node, for an attempt whose state it has prepared.
RowFunction = Callable[[NodeInfo], int]


class RowForm(NamedTuple):
    """A second form of a plugin's rule, for one node as plain numbers; equal in every answer.

    Both get the plugin and the state of the attempt.
    """

    filter: Callable[[Any, CycleState], RowFunction] | None = None
    score: Callable[[Any, CycleState], RowFunction] | None = None


# By the plugin's class: a plugin of a user may have the same name.
RowForms = Mapping[type, RowForm]
_NO_ROW_FORM: Final = RowForm()


class FilterStep(NamedTuple):
    filter_index: int
    name: str
    plugin: FilterPlugin
    reuse: Reuse
    rule: AskRule | None = None
    row_form: Callable[[CycleState], RowFunction] | None = None
    per_node: bool = False


class ScoreStep(NamedTuple):
    name: str
    plugin: ScorePlugin
    normalizer: NormalizePlugin | None
    weight: int
    reuse: Reuse
    final_scores: FinalScores | None = None
    row_form: Callable[[CycleState], RowFunction] | None = None


class ReserveStep(NamedTuple):
    name: str
    plugin: ReservePlugin
    reserves_filtered: bool


class PlacementScoreStep(NamedTuple):
    name: str
    plugin: PlacementScorePlugin
    normalizer: NormalizePlacementsPlugin | None
    weight: int


# Methods that are called together: a plugin has all of them or none.
_TOGETHER: Final = (
    ("filter", "filter_status"),
    ("reserve", "unreserve"),
    ("pre_bind", "pre_bind_pre_flight"),
    ("add_pod", "remove_pod"),
)
# A method, and the one without which it is not called.
_NEEDS: Final = (
    ("normalize", "score"),
    ("add_pod", "pre_filter"),
    ("normalize_placements", "score_placement"),
)


def check_extension_points(plugin: object) -> None:
    """Raise ConfigError for a plugin with a method that would never be called, or with none."""
    pairs = [*_TOGETHER, *((second, first) for first, second in _TOGETHER), *_NEEDS]
    for method, needed in pairs:
        if hasattr(plugin, method) and not hasattr(plugin, needed):
            raise ConfigError(
                f'the class has "{method}" but no "{needed}", so "{method}" would never be called'
            )
    if not any(isinstance(plugin, interface) for _, _, interface in _POINTS):
        raise ConfigError("the class has no method of an extension point, as filter or score")


class Profile:
    """The plugins of one scheduler name, ready to run. Lists are in the order of execution."""

    def __init__(
        self,
        config: ProfileConfig,
        plugins: Mapping[str, Plugin],
        row_forms: RowForms = MappingProxyType({}),
    ) -> None:
        """`plugins` holds an instance of every plugin the configuration enables anywhere."""
        self.name = config.scheduler_name
        self.percentage_of_nodes_to_score = config.percentage_of_nodes_to_score
        self.plugins = plugins
        lists = _plugin_lists(config.plugins, plugins)
        self.pre_enqueue = _typed(PreEnqueuePlugin, lists["pre_enqueue"])
        self.pre_filter = _typed(PreFilterPlugin, lists["pre_filter"])
        self.filter = _typed(FilterPlugin, lists["filter"])
        self.pre_filter_extensions = [
            plugin for plugin in self.pre_filter if isinstance(plugin, PreFilterExtensions)
        ]
        self.post_filter = _typed(PostFilterPlugin, lists["post_filter"])
        # None: one of them has to be called for every pod.
        self.repeated_post_filter = _all_repeated(lists["post_filter"])
        self.pre_score = _typed(PreScorePlugin, lists["pre_score"])
        self.score = _typed(ScorePlugin, lists["score"])
        self.reserve = _typed(ReservePlugin, lists["reserve"])
        self.permit = _typed(PermitPlugin, lists["permit"])
        self.pre_bind = _typed(PreBindPlugin, lists["pre_bind"])
        self.bind = _typed(BindPlugin, lists["bind"])
        self.post_bind = _typed(PostBindPlugin, lists["post_bind"])
        queue_sort = _typed(QueueSortPlugin, lists["queue_sort"])
        if len(queue_sort) != 1:
            raise ConfigError(
                "only one queue sort plugin required for profile with scheduler name "
                f'"{self.name}", but got {len(queue_sort)}'
            )
        self.queue_sort = queue_sort[0]
        if not self.bind:
            raise ConfigError(
                f'at least one bind plugin is needed for profile with scheduler name "{self.name}"'
            )
        self.placement_generate = _typed(PlacementGeneratePlugin, lists["placement_generate"])
        if len(self.placement_generate) > 1:
            raise ConfigError(
                "at most one placement generate plugin is allowed for profile with scheduler name "
                f'"{self.name}"'
            )
        weights = _weights("score", ScorePlugin, config.plugins, plugins)
        self.weights = {plugin_name(plugin): weights[plugin_name(plugin)] for plugin in self.score}
        # What every cycle needs of these plugins, looked up once.
        self.pre_filter_steps = [(plugin_name(plugin), plugin) for plugin in self.pre_filter]
        self.filter_steps = [
            FilterStep(
                index,
                plugin_name(plugin),
                plugin,
                reuse_of(plugin),
                getattr(plugin, "filter_rule", None),
                _bound(row_forms.get(_answering_class(plugin), _NO_ROW_FORM).filter, plugin),
                getattr(plugin, "per_node", False),
            )
            for index, plugin in enumerate(self.filter)
        ]
        self.reserve_steps = [
            ReserveStep(plugin_name(plugin), plugin, getattr(plugin, "reserves_filtered", False))
            for plugin in self.reserve
        ]
        self.pre_score_steps = [(plugin_name(plugin), plugin) for plugin in self.pre_score]
        self.score_steps = [
            ScoreStep(
                plugin_name(plugin),
                plugin,
                plugin if isinstance(plugin, NormalizePlugin) else None,
                self.weights[plugin_name(plugin)],
                reuse_of(plugin),
                getattr(plugin, "final_scores", None),
                _bound(row_forms.get(_answering_class(plugin), _NO_ROW_FORM).score, plugin),
            )
            for plugin in self.score
        ]
        # None: no pod of the profile has a signature (spec 04 §15).
        self.signers = _signers(
            [*lists["pre_filter"], *lists["filter"], *lists["pre_score"], *lists["score"]]
        )
        self.placement_score_steps = _placement_score_steps(
            _typed(PlacementScorePlugin, lists["placement_score"]),
            _weights("placement_score", PlacementScorePlugin, config.plugins, plugins),
        )
        self.pod_group_post_filter = _typed(
            PodGroupPostFilterPlugin, lists["pod_group_post_filter"]
        )
        # This point cannot be configured (spec 12 §15.2).
        self.placement_feasible = [
            plugin for plugin in plugins.values() if isinstance(plugin, PlacementFeasiblePlugin)
        ]
        # Spec 11 §3: this point cannot be configured; the first plugin that has it is used.
        self.group_post_filter = next(
            (plugin for plugin in plugins.values() if isinstance(plugin, GroupPostFilterPlugin)),
            None,
        )


def _placement_score_steps(
    plugins: Sequence[PlacementScorePlugin], weights: Mapping[str, int]
) -> list[PlacementScoreStep]:
    return [
        PlacementScoreStep(
            plugin_name(plugin),
            plugin,
            plugin if isinstance(plugin, NormalizePlacementsPlugin) else None,
            weights[plugin_name(plugin)],
        )
        for plugin in plugins
    ]


def _signers(plugins: Sequence[Plugin]) -> Sequence[SignPlugin] | None:
    """Each of these plugins once; None if one of them signs no pod."""
    signers: list[SignPlugin] = []
    for plugin in plugins:
        if not isinstance(plugin, SignPlugin) or getattr(plugin, "signs_none", False):
            return None
        if plugin not in signers:
            signers.append(plugin)
    return signers


def _answering_class(plugin: object) -> type:
    """The class whose answers the plugin gives: its own, unless it names one that it derives from
    and whose filter and scores it leaves as they are."""
    return getattr(plugin, "answers_as", type(plugin))


def _bound(
    form: Callable[[Any, CycleState], RowFunction] | None, plugin: object
) -> Callable[[CycleState], RowFunction] | None:
    return None if form is None else partial(form, plugin)


# A function of the standard library, because it is called several times per pod.
plugin_name: Final[Callable[[object], str]] = attrgetter("name")


def _plugin_lists(plugins: Plugins, instances: Mapping[str, Plugin]) -> dict[str, list[Plugin]]:
    """The final list of every extension point."""
    # What is enabled for single points is checked before multiPoint is expanded.
    enabled = {
        field: _check_enabled(getattr(plugins, field).enabled, type_name, interface, instances)
        for field, type_name, interface in _POINTS
    }
    return {
        field: _expand(plugins, field, enabled[field], type_name, interface, instances)
        for field, type_name, interface in _POINTS
    }


def _expand(
    plugins: Plugins,
    field: str,
    enabled: Sequence[str],
    type_name: str,
    interface: type,
    instances: Mapping[str, Plugin],
) -> list[Plugin]:
    """The list of one extension point: what was enabled for it, and what multiPoint adds."""
    point: PluginSet = getattr(plugins, field)
    disabled = {ref.name for ref in point.disabled}
    if not plugins.multi_point.enabled or "*" in disabled:
        return [instances[name] for name in enabled]
    overrides: set[str] = set()
    multi: list[str] = []
    for ref in plugins.multi_point.enabled:
        if ref.name not in instances:
            raise _unknown(type_name, ref.name)
        if not isinstance(instances[ref.name], interface) or ref.name in disabled:
            continue
        if ref.name in overrides or ref.name in multi:
            raise ConfigError(f'plugin "{ref.name}" already registered as "{type_name}"')
        if ref.name in enabled:
            overrides.add(ref.name)
        else:
            multi.append(ref.name)
    order = [
        *(name for name in enabled if name in overrides),
        *multi,
        *(name for name in enabled if name not in overrides),
    ]
    return [instances[name] for name in order]


def _unknown(type_name: str, name: str) -> ConfigError:
    # No name of a plugin has a dot. Upstream has no plugins that are named by their class.
    hint = "; a class of your own is named module:Class" if "." in name else ""
    return ConfigError(f'{type_name} "{name}" does not exist{hint}')


def _check_enabled(
    enabled: Sequence[PluginRef], type_name: str, interface: type, instances: Mapping[str, Plugin]
) -> list[str]:
    names: list[str] = []
    for ref in enabled:
        plugin = instances.get(ref.name)
        if plugin is None:
            raise _unknown(type_name, ref.name)
        if not isinstance(plugin, interface):
            raise ConfigError(f'plugin "{ref.name}" does not extend {type_name} plugin')
        if ref.name in names:
            raise ConfigError(f'plugin "{ref.name}" already registered as "{type_name}"')
        names.append(ref.name)
    return names


def _weights(
    field: str, interface: type, plugins: Plugins, instances: Mapping[str, Plugin]
) -> dict[str, int]:
    """Weight of every plugin that can score, disabled or not: the first counts, 0 means 1."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*getattr(plugins, field).enabled, *plugins.multi_point.enabled):
        if ref.name in weights or not isinstance(instances.get(ref.name), interface):
            continue
        weight = weights[ref.name] = ref.weight or 1
        if weight * MAX_NODE_SCORE > MAX_INT64 - total:
            point = field.replace("_", " ")
            raise ConfigError(f"{point} plugins: total score of Score plugins could overflow")
        total += weight * MAX_NODE_SCORE
    return weights


def _typed(interface: type[P], plugins: list[Plugin]) -> list[P]:
    # `_expand` kept only plugins that implement the interface.
    return cast(list[P], plugins)


def _all_repeated(plugins: Sequence[Plugin]) -> Sequence[RepeatedPostFilterPlugin] | None:
    repeated = [plugin for plugin in plugins if isinstance(plugin, RepeatedPostFilterPlugin)]
    return repeated if len(repeated) == len(plugins) else None
