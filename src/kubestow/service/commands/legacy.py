"""`kubestow simulate --compatibility v1.9`: the rules of its flags, and the run."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubestow.api.decode import is_map
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.engine.legacy.algorithm import Algorithm
from kubestow.engine.legacy.decide_v1_9 import LegacyDecision
from kubestow.service.compatibility import AlgorithmOptions
from kubestow.service.legacy.algorithm_source import legacy_algorithm
from kubestow.service.output import stderr
from kubestow.simulator.legacy.simulation import LegacySimulation


def v1_9_simulation(
    documents: Sequence[Document],
    config_maps: Sequence[Document],
    options: AlgorithmOptions,
) -> Callable[[Callable[[LegacyDecision], None]], LegacySimulation]:
    """A function that makes the simulation, to be called in the loop it runs in."""
    data = None
    if options.source == "configmap":
        namespace, name = options.policy_configmap_namespace, options.policy_configmap
        data = config_map_data([document.raw for document in config_maps], namespace, name)
    algorithm = _without_binders(legacy_algorithm(options, data))
    return lambda note: LegacySimulation(
        documents, algorithm, scheduler_name=options.scheduler_name, on_decision=note
    )


def _without_binders(algorithm: Algorithm) -> Algorithm:
    """Extenders filter and score, but do not bind: they would do so in a real cluster."""
    if not any(extender.bind_verb for extender in algorithm.extenders):
        return algorithm
    stderr().print("Extenders are not asked to bind in a simulation.")
    extenders = (msgspec.structs.replace(one, bind_verb="") for one in algorithm.extenders)
    return algorithm._replace(extenders=tuple(extenders))


def config_map_data(
    documents: Sequence[JsonObject], namespace: str, name: str
) -> Mapping[str, str] | None:
    for document in documents:
        metadata = document.get("metadata")
        if document.get("kind") != "ConfigMap" or not is_map(metadata):
            continue
        if metadata.get("name") == name and metadata.get("namespace", "default") == namespace:
            data = document.get("data")
            return {key: str(value) for key, value in data.items()} if is_map(data) else {}
    return None
