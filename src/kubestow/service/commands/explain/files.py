"""Where the cluster of `kubestow explain` comes from, if it is described by files."""

import re
from typing import Final

from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.close_names import close_names
from kubestow.config.feature_gates import FeatureGates
from kubestow.explain.cluster import StillCluster
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.simulator.attempted import Attempted, cluster_at_attempt
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.still import still_cluster

_NO_CLASS: Final = re.compile(r"no PriorityClass with name (\S+) was found")


class FileSource:
    """A cluster that files describe."""

    def __init__(
        self, request: InputRequest, loaded: LoadedPlugins, gates: FeatureGates, clock: Clock
    ) -> None:
        """InputError names the place of what cannot be used."""
        dialects = dialects_of(loaded.config)
        given = load_input(request, command="explain", dialects=dialects, gates=gates)
        self._documents = given.documents
        self._refusals = given.refusals
        self._loaded = loaded
        self._gates = gates
        self._clock = clock

    def cluster(self) -> StillCluster:
        """The cluster before any pod is placed."""
        config, registry = self._loaded
        return still_cluster(
            self._documents, config, self._clock, registry=registry, gates=self._gates
        )

    def refusal_of(self, name: str, cluster: StillCluster) -> str:
        """Why the pod of this name, or those of this workload, cannot be made, and what would help;
        empty if none was refused."""
        start = re.compile(rf'(pods|Pod|\w+) "{re.escape(name)}(-[a-z0-9-]+)?" is ')
        text = next((each for each in self._refusals if start.search(each)), "")
        missing = _NO_CLASS.search(text)
        if missing is None:
            return text
        known = [each.metadata.name for each in cluster.objects.priority_classes]
        close = close_names(missing[1], known)
        there = f"; there is {', '.join(close)}" if close else ""
        value = "0" if not close else str(_value(cluster, close[0]))
        command = f"kubectl create priorityclass {missing[1]} --value={value}"
        return f"{text}{there}; it is made with: {command}"

    def at_attempt(self, pod: Pod) -> Attempted:
        """The cluster when the pod has its turn; the pod waits for one of the profiles."""
        config, registry = self._loaded
        key = PodKey.of(pod)
        return cluster_at_attempt(
            self._documents, key, config, self._clock, registry=registry, gates=self._gates
        )


def _value(cluster: StillCluster, name: str) -> int:
    found = cluster.objects.priority_classes.get(name)
    return 0 if found is None else found.value
