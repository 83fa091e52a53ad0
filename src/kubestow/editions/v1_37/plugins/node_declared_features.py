"""NodeDeclaredFeatures of v1.37 (spec 12 §3.3)."""

from kubestow.api.declared_features import required_features
from kubestow.api.pod import Pod
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.plugins.node_declared_features import NodeDeclaredFeatures, hint_for_node


class NodeDeclaredFeaturesV137(NodeDeclaredFeatures):
    def events(self) -> Registrations:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, hint_for_node),
            on(Resource.TARGET_POD, Action.UPDATE, _hint_for_own_update),
        ]


def _hint_for_own_update(pod: Pod, old: Pod, new: Pod) -> Hint:
    return Hint.QUEUE if required_features(old) != required_features(new) else Hint.SKIP
