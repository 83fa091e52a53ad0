"""`kubestow run` with the configuration of the example, started again in between."""

import asyncio
from pathlib import Path

import pytest
from gpu_sharing.requests import GPU_INDEX
from gpu_sharing.trace import Manifest, TraceNode, TracePod

from kubestow.api.pod import Pod
from tools.https_cluster import HttpsCluster

pytestmark = pytest.mark.slow

LIMIT_S = 300
EXAMPLES = Path(__file__).parents[3] / "examples"


def gpu_pod(name: str, milli: int) -> Manifest:
    return TracePod(name, 1000, 1000, 1, milli, "").manifest()


def is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def test_a_scheduler_that_is_started_again_knows_the_gpus_in_use(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = HttpsCluster(tmp_path)
        example = (EXAMPLES / "gpu_sharing" / "config.yaml").read_text()
        config = tmp_path / "config.yaml"
        config.write_text(f"{example}clientConnection: {{kubeconfig: {cluster.kubeconfig}}}\n")
        async with asyncio.timeout(LIMIT_S), cluster.serving():
            cluster.store.load([TraceNode("n", 64_000, 262_144, 2, "T4").manifest()])
            gpus: list[str] = []
            # The second does not fit beside the first, and the third only beside the first.
            for name, milli in (("a", 600), ("b", 700), ("c", 400)):
                cluster.store.load([gpu_pod(name, milli)])
                flags = (f"--config={config}", "--leader-elect=false")
                async with cluster.scheduler(*flags, import_from=EXAMPLES):
                    pod = await cluster.wait_for_pod(name, is_placed)
                gpus.append(pod.metadata.annotations[GPU_INDEX])
            assert gpus[0] != gpus[1]
            assert gpus[2] == gpus[0]

    asyncio.run(main())
