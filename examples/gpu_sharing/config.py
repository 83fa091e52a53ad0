"""The KubeSchedulerConfiguration of a policy, for the experiment and for any cluster.

`python -m gpu_sharing.config --trace FOLDER` prints it: FGD needs the typical pods of the workload,
which are counted in a trace. `config.yaml` is one with a few pods to begin with.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from gpu_sharing.fragmentation import TypicalPod, typical_pods
from gpu_sharing.ties import DIGITS, POLICY_WEIGHT
from gpu_sharing.trace import TraceError, read_pods

# In the order of the paper.
POLICIES: Final = {
    "Random": "gpu_sharing.policies:Random",
    "DotProd": "gpu_sharing.policies:DotProd",
    "GpuClustering": "gpu_sharing.policies:GpuClustering",
    "GpuPacking": "gpu_sharing.policies:GpuPacking",
    "BestFit": "gpu_sharing.policies:BestFit",
    "FGD": "gpu_sharing.fgd:FGD",
}
# "name": the smallest node name wins, as in the paper's simulator. "list": as kubestow does it.
TIES: Final = ("name", "list")


def configuration(
    policy: str, typical: Sequence[TypicalPod], *, ties: str = "name", seed: int = 0
) -> dict[str, Any]:
    """The default plugins and GpuShare filter; the policy is the only one that scores."""
    scores = [{"name": POLICIES[policy], "weight": POLICY_WEIGHT}]
    if ties == "name":
        scores += [
            {"name": "gpu_sharing.ties:NameOrderHigh", "weight": DIGITS},
            {"name": "gpu_sharing.ties:NameOrderLow", "weight": 1},
        ]
    args: dict[str, Any] = {}
    if policy == "Random":
        args = {"seed": seed}
    elif policy == "FGD":
        args = {"typicalPods": [_without_defaults(pod) for pod in typical]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "gpu_sharing.gpu_share:GpuShare"}]},
                    # The paper's pods are never evicted.
                    "postFilter": {"disabled": [{"name": "*"}]},
                    "preScore": {"disabled": [{"name": "*"}]},
                    "score": {"disabled": [{"name": "*"}], "enabled": scores},
                },
                "pluginConfig": [{"name": policy, "args": args}] if args else [],
            }
        ],
    }


def write_configuration(config: dict[str, Any], path: Path) -> Path:
    path.write_text(as_yaml(config), encoding="utf-8")
    return path


def as_yaml(config: dict[str, Any]) -> str:
    return yaml.safe_dump(config, sort_keys=False)


def _without_defaults(pod: TypicalPod) -> dict[str, Any]:
    fields = msgspec.to_builtins(pod)
    return {name: value for name, value in fields.items() if value or name == "cpuMilli"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gpu_sharing.config", description=__doc__)
    parser.add_argument("--trace", type=Path, required=True, help="the folder of the openb trace")
    parser.add_argument(
        "--pods", default="default", help="the pod list to count (default: default)"
    )
    parser.add_argument("--policy", choices=POLICIES, default="FGD")
    parser.add_argument("--ties", choices=TIES, default="name", help="which of equal nodes wins")
    options = parser.parse_args()
    try:
        requests = [pod.request() for pod in read_pods(options.trace, options.pods)]
    except TraceError as error:
        sys.exit(f"error: {error}")
    config = configuration(options.policy, typical_pods(requests), ties=options.ties)
    print(as_yaml(config), end="")


if __name__ == "__main__":
    main()
