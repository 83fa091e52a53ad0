"""The cluster of a kubeconfig, for commands that take `--from-cluster`."""

import asyncio

from kubestow.clock import SystemClock
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.service.user_agent import user_agent
from kubestow.simulator.input.live import LiveCluster, read_server


def read_live(kubeconfig: str, context: str) -> LiveCluster:
    """Everything that decides; InputError or ConfigError if it cannot be read."""
    clock = SystemClock()
    server = Kubeconfig(kubeconfig, context).server(clock)
    return asyncio.run(read_server(server, clock, f"{user_agent()}/read"))
