"""Clients without credentials against the port of `kubestow run`, and what they delay.

`python -m tools.port_attacks` starts a scheduler as a process of its own, attacks its
port in several ways, and measures the renewals of its lease and the answers to probes.

    attacks    the clients, each kind in a process of its own
    cluster    another process: the API server, which reviews slowly and follows the lease
    probes     what a kubelet asks
    run        one attack after the other, and a report of each
"""
