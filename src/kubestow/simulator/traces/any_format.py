"""A trace of any of the formats, with what its pods used if there is a file of that."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.traces.alibaba import alibaba_scenario
from kubestow.simulator.traces.azure import azure_scenario
from kubestow.simulator.traces.openb import openb_scenario
from kubestow.simulator.traces.plain import plain_nodes, plain_scenario
from kubestow.simulator.traces.use_files import UseFormat, series_of
from kubestow.simulator.usage.plan import UsagePlan

TraceName = Literal["csv", "openb", "alibaba2018", "azure2019"]
# Whose files have all nodes.
_WITH_NODES: Final = ("openb", "alibaba2018")
_USE_FORMATS: Final[dict[TraceName, UseFormat]] = {
    "csv": "measurements",
    "openb": "measurements",
    "alibaba2018": "alibaba2018",
    "azure2019": "azure2019",
}


def read_trace(
    format: TraceName,
    *,
    pods: Path,
    nodes: Path | None = None,
    usage: Path | None = None,
    documents: Sequence[Document] = (),
    start_s: float = 0.0,
) -> Scenario:
    """The scenario of a trace; InputError names file, line and column of what is wrong.

    documents   a cluster besides `nodes`, for formats whose files have none
    start_s     when the run starts, in seconds since 1970: measurements may have dates
    """
    scenario = _scenario(format, pods, nodes, documents)
    if usage is None:
        return scenario
    series = series_of(usage, _USE_FORMATS[format], start_s=start_s)
    return msgspec.structs.replace(scenario, usage=UsagePlan(series=series))


def _scenario(
    format: TraceName, pods: Path, nodes: Path | None, documents: Sequence[Document]
) -> Scenario:
    if format in _WITH_NODES:
        if nodes is None or documents:
            raise InputError(f"a trace of the format {format} has its nodes from a file of its own")
        reader = openb_scenario if format == "openb" else alibaba_scenario
        return reader(nodes, pods)
    if nodes is None and not documents:
        raise InputError(f"a trace of the format {format} needs nodes: a CSV file, or manifests")
    if format == "azure2019":
        return azure_scenario(pods, [*documents, *(plain_nodes(nodes) if nodes else ())])
    return plain_scenario(pods, nodes=nodes, documents=documents)
