"""Groups of pods as v1.37 has them: v1beta1 objects, and trees of composite groups (spec 12 §13).

    CompositePodGroup "root" ──┬── CompositePodGroup ── PodGroup ── pods
                               └── PodGroup ── pods

What is queued, tried, prioritised and evicted as one is the root of such a tree; a group without
a parent is a root itself. Trees need the gate CompositePodGroup.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import ClassVar, Final

from kubestow.api.gang_dialects import V1BETA1, Dialect, SpecV1Beta1, read_v1beta1
from kubestow.api.group import GangOptions, Group, GroupKey, TreeNode
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.api.pod_group import AnyPodGroup, CompositePodGroup, PodGroupV1Beta1
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ClusterObjects
from kubestow.errors import CacheError

# Objects come from others: a circle of parents must end.
TREE_DEPTH: Final = 4
_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)


class SpecV137(SpecV1Beta1, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str = ""
    preemption_policy: str | None = None


def _read(pod_group: PodGroupV1Beta1, spec: SpecV137, options: GangOptions) -> Group:
    return read_v1beta1(pod_group, spec, options)._replace(
        parent=spec.parent_composite_pod_group_name, preemption_policy=spec.preemption_policy
    )


_DIALECT: Final = Dialect(V1BETA1, PodGroupV1Beta1, "", SpecV137, _read)


class GroupsV137(Groups):
    """`has_trees`: the gate CompositePodGroup is on."""

    keeps_objects: ClassVar[bool] = True

    def __init__(self, objects: ClusterObjects, *, has_trees: bool = False) -> None:
        super().__init__(objects.pod_groups)
        self._own = objects.pod_groups_v1beta1
        self._composites = objects.composite_pod_groups
        self.has_trees = has_trees
        # Name of a composite group → its parts, whether they are known or not.
        self._parts: dict[GroupKey, dict[TreeNode, None]] = {}
        self._own.subscribe(self._changed)
        self._composites.subscribe(self._composite_changed)

    # --- rules ---

    def _read(self, key: GroupKey) -> Group | None:
        own = self._own.get(*key)
        return super()._read(key) if own is None else self._reader.read(_DIALECT, own)

    def object_of(self, key: GroupKey) -> AnyPodGroup | None:
        return self._own.get(*key) or super().object_of(key)

    def parent_of(self, node: TreeNode) -> TreeNode | None:
        """The composite group that this one is part of, be it known or not; None for a root."""
        if not self.has_trees:
            return None
        if node.is_composite:
            composite = self._composites.get(*node.key)
            name = "" if composite is None else composite.spec.parent_composite_pod_group_name
        else:
            rules = self.rules(node.key)
            name = "" if rules is None else rules.parent
        return TreeNode(GroupKey(node.key.namespace, name), True) if name else None

    def is_known(self, node: TreeNode) -> bool:
        if node.is_composite:
            return self._composites.get(*node.key) is not None
        return self.rules(node.key) is not None

    def path_of(self, key: GroupKey) -> list[TreeNode] | None:
        """The groups from this one up to its root; None as long as one of them is not known."""
        path: list[TreeNode] = []
        node: TreeNode | None = TreeNode(key)
        while node is not None:
            if len(path) == TREE_DEPTH or not self.is_known(node):
                return None
            path.append(node)
            node = self.parent_of(node)
        return path

    def root_of(self, key: GroupKey) -> TreeNode | None:
        """The root of the group's tree: that is queued. None as long as it is not known."""
        if not self.has_trees:
            return None if self.rules(key) is None else TreeNode(key)
        path = self.path_of(key)
        return None if path is None else path[-1]

    def root_of_pod(self, pod: Pod) -> TreeNode | None:
        key = self.key_of(pod)
        return None if key is None else self.root_of(key)

    def children_of(self, node: TreeNode) -> list[TreeNode]:
        """The parts of a composite group that are known: older ones first, then by name."""
        parts = (part for part in self._parts.get(node.key, ()) if self.is_known(part))
        return sorted(parts, key=self._age)

    def leaves_of(self, node: TreeNode) -> Iterator[GroupKey]:
        """The groups of pods in the tree."""
        if not node.is_composite:
            yield node.key
            return
        for child in self.children_of(node):
            yield from self.leaves_of(child)

    def _age(self, node: TreeNode) -> tuple[datetime, str]:
        found = self._object(node)
        created = None if found is None else found.metadata.creation_timestamp
        return created or _LONG_AGO, node.key.name

    def _object(self, node: TreeNode) -> ApiObject | None:
        if node.is_composite:
            return self._composites.get(*node.key)
        return self.object_of(node.key)

    def object_of_node(self, node: TreeNode) -> ApiObject | None:
        return self._object(node)

    def uid_of(self, node: TreeNode) -> str:
        found = self._object(node)
        return "" if found is None else found.metadata.uid

    # --- what applies to a node of a tree ---

    def min_count_of(self, node: TreeNode) -> int:
        """How many members, or parts, the group needs; 1 without a gang."""
        if node.is_composite:
            composite = self._composites.get(*node.key)
            gang = None if composite is None else composite.spec.scheduling_policy.gang
            return 1 if gang is None else gang.min_group_count
        rules = self.rules(node.key)
        return 1 if rules is None or rules.min_count is None else rules.min_count

    def priority_of(self, node: TreeNode) -> int:
        if node.is_composite:
            composite = self._composites.get(*node.key)
            return (composite.spec.priority or 0) if composite is not None else 0
        rules = self.rules(node.key)
        return (rules.priority or 0) if rules is not None else 0

    def preemption_policy_of(self, node: TreeNode) -> str:
        if node.is_composite:
            composite = self._composites.get(*node.key)
            policy = None if composite is None else composite.spec.preemption_policy
        else:
            rules = self.rules(node.key)
            policy = None if rules is None else rules.preemption_policy
        return policy or "PreemptLowerPriority"

    def topology_key_of(self, node: TreeNode) -> str | None:
        if not node.is_composite:
            return self.required_rules(node.key).topology_key
        composite = self._composites.get(*node.key)
        constraints = None if composite is None else composite.spec.scheduling_constraints
        return constraints.topology[0].key if constraints and constraints.topology else None

    def is_evicted_whole(self, node: TreeNode) -> bool:
        if node.is_composite:
            composite = self._composites.get(*node.key)
            mode = None if composite is None else composite.spec.disruption_mode
            return mode is not None and mode.all is not None
        rules = self.rules(node.key)
        return rules is not None and rules.is_evicted_whole

    def is_ready(self, node: TreeNode, *, scheduled: bool = False) -> bool:
        """Whether enough members exist, or are scheduled, for the group and its parts."""
        if node.is_composite:
            ready = sum(self.is_ready(part, scheduled=scheduled) for part in self.children_of(node))
            return ready >= self.min_count_of(node)
        members = self.find(node.key)
        if members is None:
            return False
        return (members.scheduled_count if scheduled else len(members)) >= self.min_count_of(node)

    def has_placed(self) -> bool:
        """Whether any pod that is placed is a member of a group."""
        return any(members.scheduled_count for members in self.all_members().values())

    def why_incomplete(self, key: GroupKey) -> str:
        """What of the tree of a group is not known; empty if all of it is."""
        node: TreeNode | None = TreeNode(key)
        below: TreeNode | None = None
        for _ in range(TREE_DEPTH):
            if node is None:
                return ""
            if not self.is_known(node):
                if below is None:
                    return f"pod group object not found for pod group {node}"
                return f"parent composite pod group state not found for {below}"
            below, node = node, self.parent_of(node)
        return "" if node is None else f"composite pod group object not found in state for {node}"

    def required_path(self, key: GroupKey) -> list[TreeNode]:
        path = self.path_of(key)
        if path is None:
            raise CacheError(self.why_incomplete(key))
        return path

    # --- changes ---

    def _changed(self, old: PodGroupV1Beta1 | None, new: PodGroupV1Beta1 | None) -> None:
        self._forget_rules(old, new)
        if self.has_trees:
            for each in (old, new):
                if each is not None:
                    name = each.spec.get("parentCompositePodGroupName")
                    self._note_part(each, name, TreeNode(_key(each)), is_there=each is new)

    def _composite_changed(
        self, old: CompositePodGroup | None, new: CompositePodGroup | None
    ) -> None:
        for each in (old, new):
            if each is not None:
                name = each.spec.parent_composite_pod_group_name
                self._note_part(each, name, TreeNode(_key(each), True), is_there=each is new)

    def _note_part(
        self, part: ApiObject, parent: object, node: TreeNode, *, is_there: bool
    ) -> None:
        if not isinstance(parent, str) or not parent:
            return
        key = GroupKey(part.metadata.namespace, parent)
        parts = self._parts.setdefault(key, {})
        if is_there:
            parts[node] = None
        else:
            parts.pop(node, None)
            if not parts:
                del self._parts[key]


def groups_of(groups: Groups, objects: ClusterObjects) -> GroupsV137:
    """The groups of a scheduler; none, where decisions are made without a cache of them."""
    return groups if isinstance(groups, GroupsV137) else GroupsV137(objects)


def _key(api_object: ApiObject) -> GroupKey:
    return GroupKey(api_object.metadata.namespace, api_object.metadata.name)
