"""The commands and what each is for.

Each is a function in a module of `commands`, both of the same name with _ for -, with its settings
beside it. The summaries are here so that the help of the program imports no command.
"""

from typing import Final

COMMANDS: Final = {
    "run": "Schedule pods for a cluster, as kube-scheduler does.",
    "demo": "Show the scheduler in an embedded cluster.",
    "simulate": "Place a workload on a cluster, from files or a server.",
    "compare": "Compare schedulers on the same cluster and workload.",
    "upgrade": "Find out what another Kubernetes version changes.",
    "explain": "Say why a pod is placed where it is, or why it waits.",
    "capacity": "Find out how much room a cluster has.",
    "rebalance": "Find out which pods to evict for a better placement.",
    "test": "Test where pods are placed, and after which failures.",
    "record": "Record what a cluster's scheduler sees and decides.",
    "replay": "Make the decisions of a recording again, and compare.",
    "conformance": "Compare with recorded decisions of kube-scheduler.",
    "plugin": "Check a plugin with generated pods and nodes.",
    "bench": "Measure how fast pods are decided on.",
    "print-default-config": "Print the configuration with all its defaults.",
    "version": "Print the version of kubestow and of what it runs on.",
    "help": "Print the help of the program, or of a command.",
}
