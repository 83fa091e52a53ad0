"""Where the cluster of `kubestow explain` comes from, if it is described by files."""

from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.explain.cluster import StillCluster
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.simulator.attempted import Attempted, cluster_at_attempt
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.still import still_cluster


class FileSource:
    """A cluster that files describe."""

    def __init__(
        self, request: InputRequest, loaded: LoadedPlugins, gates: FeatureGates, clock: Clock
    ) -> None:
        """InputError names the place of what cannot be used."""
        dialects = dialects_of(loaded.config)
        given = load_input(request, command="explain", dialects=dialects, gates=gates)
        self._documents = given.documents
        self._loaded = loaded
        self._gates = gates
        self._clock = clock

    def cluster(self) -> StillCluster:
        """The cluster before any pod is placed."""
        config, registry = self._loaded
        return still_cluster(
            self._documents, config, self._clock, registry=registry, gates=self._gates
        )

    def at_attempt(self, pod: Pod) -> Attempted:
        """The cluster when the pod has its turn; the pod waits for one of the profiles."""
        config, registry = self._loaded
        key = PodKey.of(pod)
        return cluster_at_attempt(
            self._documents, key, config, self._clock, registry=registry, gates=self._gates
        )
