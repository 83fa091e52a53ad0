"""Host ports (spec 01 §6, 05 §2.7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Container, ContainerPort, Pod, PodSpec
from kubestow.api.ports import HostPort, UsedPorts, host_ports

USED = [
    HostPort("0.0.0.0", "TCP", 80),
    HostPort("10.0.0.1", "UDP", 53),
    HostPort("127.0.0.1", "TCP", 8080),
    HostPort("::", "TCP", 9090),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(HostPort("", "TCP", 80), True, id="H1-no-ip"),
        pytest.param(HostPort("10.0.0.9", "", 80), True, id="H1-no-protocol"),
        pytest.param(HostPort("10.0.0.9", "UDP", 80), False, id="H2"),
        pytest.param(HostPort("10.0.0.2", "UDP", 53), False, id="H3-other-ip"),
        pytest.param(HostPort("0.0.0.0", "UDP", 53), True, id="H3-any-ip"),
        pytest.param(HostPort("127.0.0.1", "TCP", 8080), True, id="H4-same-ip"),
        pytest.param(HostPort("127.0.0.2", "TCP", 8080), False, id="H4-other-ip"),
        pytest.param(HostPort("", "TCP", 8080), True, id="H4-no-ip"),
        pytest.param(HostPort("1.2.3.4", "TCP", 9090), False, id="H5-double-colon-is-no-wildcard"),
        pytest.param(HostPort("", "TCP", 9090), True, id="H5-no-ip"),
        pytest.param(HostPort("::1", "TCP", 9090), False, id="H5-other-v6"),
        pytest.param(HostPort("10.0.0.9", "tcp", 80), False, id="H6-case-counts"),
        pytest.param(HostPort("", "TCP", 0), False, id="H6-port-zero"),
    ],
)
def test_port_conflicts(wanted: HostPort, expected: bool) -> None:
    assert UsedPorts(USED).conflicts(wanted) is expected


def test_sidecars_come_first_and_plain_init_containers_do_not_count() -> None:
    pod = Pod(
        spec=PodSpec(
            init_containers=(
                Container(ports=(ContainerPort(host_port=1001),)),
                Container(restart_policy="Always", ports=(ContainerPort(host_port=1002),)),
            ),
            containers=(
                Container(
                    ports=(
                        ContainerPort(container_port=1003),
                        ContainerPort(host_port=1004, protocol="UDP", host_ip="10.0.0.1"),
                    )
                ),
            ),
        )
    )  # H7
    assert host_ports(pod) == (
        HostPort("0.0.0.0", "TCP", 1002),
        HostPort("10.0.0.1", "UDP", 1004),
    )


def test_ports_requested_twice_are_listed_twice() -> None:
    port = ContainerPort(host_port=80)
    pod = Pod(spec=PodSpec(containers=(Container(ports=(port, port)),)))
    assert host_ports(pod) == (HostPort("0.0.0.0", "TCP", 80),) * 2


def test_one_removal_frees_a_port_added_twice() -> None:
    used = UsedPorts([HostPort("", "", 80), HostPort("0.0.0.0", "TCP", 80)])
    assert len(used) == 1
    used.remove(HostPort("", "TCP", 80))
    assert not used.conflicts(HostPort("", "", 80))
    assert used == UsedPorts()


def test_removing_a_free_port_changes_nothing() -> None:
    used = UsedPorts(USED)
    used.remove(HostPort("10.0.0.7", "UDP", 53))
    used.remove(HostPort("", "SCTP", 1))
    assert used == UsedPorts(USED)


def test_a_copy_is_independent() -> None:
    used = UsedPorts(USED)
    copy = used.copy()
    copy.add(HostPort("10.0.0.2", "UDP", 53))
    assert not used.conflicts(HostPort("10.0.0.2", "UDP", 53))
    assert copy.conflicts(HostPort("10.0.0.2", "UDP", 53))


PORTS = st.builds(
    HostPort,
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "::"]),
    st.sampled_from(["", "TCP", "UDP"]),
    st.integers(-1, 3),
)


@given(st.lists(st.tuples(st.booleans(), PORTS)), PORTS)
def test_used_ports_behave_as_a_plain_set(
    steps: list[tuple[bool, HostPort]], wanted: HostPort
) -> None:
    used = UsedPorts()
    triples: set[tuple[str, str, int]] = set()
    for is_add, port in steps:
        triple = (port.ip or "0.0.0.0", port.protocol or "TCP", port.port)
        if port.port > 0:
            (triples.add if is_add else triples.discard)(triple)
        (used.add if is_add else used.remove)(port)

    assert set(used) == triples
    assert len(used) == len(triples)
    ip, protocol = wanted.ip or "0.0.0.0", wanted.protocol or "TCP"
    expected = any(
        (protocol, wanted.port) == (other_protocol, other_port)
        and (ip == "0.0.0.0" or other_ip in ("0.0.0.0", ip))
        for other_ip, other_protocol, other_port in triples
    )
    assert used.conflicts(wanted) is expected
