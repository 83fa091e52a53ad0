"""The four request views: the worked examples of spec 01 §3.6 and §4."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api import requests
from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject, ResourceList
from kubestow.api.pod import Pod
from kubestow.api.pod_shape import PodShape
from kubestow.api.quantity import parse_quantity
from kubestow.api.requests import (
    accounted_request,
    balance_request,
    filter_request,
    is_scaled_down,
    pod_requests,
    request_value,
    score_request,
)
from kubestow.api.resources import Resources

GI = 1 << 30
MI = 1 << 20
SHORT_NAMES = {"mem": "memory", "gpu": "example.com/gpu", "storage": "ephemeral-storage"}


def quantities(text: str) -> JsonObject:
    """`cpu 500m, mem 1Gi` as a resource list."""
    pairs = (pair.split() for pair in text.split(",") if pair.strip())
    return {SHORT_NAMES.get(name, name): quantity for name, quantity in pairs}


def container(text: str = "", *, name: str = "", sidecar: bool = False) -> JsonObject:
    made: JsonObject = {"name": name or f"c-{text}", "resources": {"requests": quantities(text)}}
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def status(name: str, text: str | None, allocated: str | None = None) -> JsonObject:
    made: JsonObject = {"name": name}
    if text is not None:
        made["resources"] = {"requests": quantities(text)}
    if allocated is not None:
        made["allocatedResources"] = quantities(allocated)
    return made


def pod(
    *containers: JsonObject,
    init: list[JsonObject] | None = None,
    overhead: str | None = None,
    pod_level: str | None = None,
    **pod_status: Any,
) -> Pod:
    spec: JsonObject = {"containers": list(containers), "initContainers": init or []}
    if overhead is not None:
        spec["overhead"] = quantities(overhead)
    if pod_level is not None:
        spec["resources"] = {"requests": quantities(pod_level)}
    return convert(Pod, {"spec": spec, "status": pod_status})


def resize_pending(reason: str, condition_status: str = "True") -> JsonObject:
    return {"type": "PodResizePending", "status": condition_status, "reason": reason}


INIT_1 = container("cpu 2, mem 512Mi", name="i1")
INIT_2 = container("cpu 1800m, mem 2Gi", name="i2")
SIDECAR = container("cpu 500m, mem 256Mi", name="s1", sidecar=True)
MAIN = container("cpu 1, mem 1Gi", name="main")
P1 = pod(container("cpu 250m, mem 64Mi"), container())
P2 = pod(container("cpu 100500u", name="a"), container("cpu 100500u", name="b"))
P3 = pod(MAIN, init=[INIT_1, SIDECAR, INIT_2])
P4 = pod(MAIN, init=[INIT_1, INIT_2, SIDECAR])
P5 = pod(container("cpu 500m"), overhead="cpu 250m, mem 120Mi")
P6 = pod(container("cpu 500m, mem 100Mi, gpu 1"), container(), pod_level="cpu 2")
P7 = pod(
    container("cpu 500m, mem 1Gi", name="c"),
    containerStatuses=[status("c", "cpu 1, mem 1Gi", "cpu 500m, mem 1Gi")],
)
P8 = convert(
    Pod, {"spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}
)
P9 = pod(
    container("cpu 64, mem 1Gi", name="c"),
    containerStatuses=[status("c", "cpu 1, mem 1Gi", "cpu 1, mem 1Gi")],
    conditions=[resize_pending("Infeasible")],
)
P10 = pod(
    container("cpu 100m", name="main"),
    init=[container("cpu 200m", name="i"), container("cpu 100m", name="s", sidecar=True)],
    initContainerStatuses=[status("i", "cpu 5"), status("s", "cpu 400m")],
)
P11 = pod(container("cpu 500m", name="c"), containerStatuses=[status("c", None, "cpu 3")])
P12 = pod(container("hugepages-2Mi 4Mi, storage 1Gi"), pod_level="hugepages-2Mi 8Mi, storage 5Gi")
P13 = pod(
    container("cpu 1", name="c"),
    pod_level="cpu 2, mem 1Gi",
    resources={"requests": quantities("cpu 1")},
    conditions=[resize_pending("Infeasible")],
)


@pytest.mark.parametrize(
    ("example", "a", "b", "c", "d"),
    [
        pytest.param(
            P1, (250, 64 * MI), (250, 64 * MI), (350, 276824064), (250, 64 * MI), id="P1-two"
        ),
        pytest.param(P2, (201, 0), (201, 0), (201, 419430400), (201, 0), id="P2-round-once"),
        pytest.param(P3, *[(2300, 2415919104)] * 4, id="P3-sidecar-before-init"),
        pytest.param(P4, *[(2000, 2147483648)] * 4, id="P4-sidecar-last"),
        pytest.param(
            P5, (750, 125829120), (750, 125829120), (750, 335544320), (750, 125829120), id="P5-over"
        ),
        pytest.param(
            P6,
            (2000, 104857600),
            (2000, 104857600),
            (600, 314572800),
            (2000, 104857600),
            id="P6-pod-level",
        ),
        pytest.param(P7, (1000, GI), (500, GI), (500, GI), (1000, GI), id="P7-resize-down"),
        pytest.param(P8, (0, 0), (0, 0), (100, 209715200), (0, 0), id="P8-limits-only"),
        pytest.param(P9, (1000, GI), (64000, GI), (64000, GI), (1000, GI), id="P9-infeasible"),
        pytest.param(P10, (500, 0), (200, 0), (200, 419430400), (500, 0), id="P10-init-status"),
        pytest.param(P11, (500, 0), (500, 0), (500, 209715200), (500, 0), id="P11-allocated-only"),
        pytest.param(P12, (0, 0), (0, 0), (100, 209715200), (0, 0), id="P12-hugepages"),
        pytest.param(
            P13, (1000, 0), (2000, GI), (1000, 209715200), (1000, 0), id="P13-infeasible-pod-level"
        ),
    ],
)
def test_the_four_views(
    example: Pod,
    a: tuple[int, int],
    b: tuple[int, int],
    c: tuple[int, int],
    d: tuple[int, int],
) -> None:
    accounted = accounted_request(example).requested
    filtered = filter_request(example)
    assert (accounted.milli_cpu, accounted.memory) == a
    assert (filtered.milli_cpu, filtered.memory) == b
    assert cpu_and_memory(score_request(example)) == c
    assert cpu_and_memory(balance_request(example)) == d


def cpu_and_memory(total: ResourceList) -> tuple[int, int]:
    return request_value("cpu", total), request_value("memory", total)


def test_other_names_of_p6_and_p12() -> None:
    assert accounted_request(P6).requested.scalar == {"example.com/gpu": 1}
    assert filter_request(P6).scalar == {"example.com/gpu": 1}
    expected = Resources(ephemeral_storage=GI, scalar={"hugepages-2Mi": 8 * MI})
    assert accounted_request(P12).requested == expected
    assert filter_request(P12) == expected


def test_an_infeasible_resize_leaves_an_explicit_zero() -> None:  # P13
    assert str(balance_request(P13)["memory"]) == "0"


@pytest.mark.parametrize(
    ("example", "cpu", "memory"),
    [
        pytest.param(pod(container(), container()), 200, 419430400, id="N1-two-empty"),
        pytest.param(
            pod(container("cpu 0, mem 0"), container()), 100, 209715200, id="N2-zero-stays"
        ),
        pytest.param(
            pod(container("cpu 50m, mem 10Mi"), init=[container()]),
            100,
            209715200,
            id="N3-init-wins",
        ),
        pytest.param(
            pod(
                container("cpu 50m, mem 10Mi"),
                init=[container(name="s", sidecar=True), container(name="i")],
            ),
            200,
            419430400,
            id="N4-init-on-sidecar",
        ),
        pytest.param(
            pod(container(), container(), pod_level="cpu 2"), 2000, 419430400, id="N5-pod-level"
        ),
        pytest.param(
            pod(container(), container(), pod_level="mem 1Gi", overhead="cpu 10m"),
            10,
            GI,
            id="N6-overhead-is-a-key",
        ),
        pytest.param(P5, 750, 335544320, id="N7-overhead"),
        pytest.param(
            pod(container("cpu 2"), pod_level="cpu 1"), 1000, 209715200, id="N8-smaller-override"
        ),
        pytest.param(
            pod(container("cpu 1"), pod_level="storage 5Gi"),
            1000,
            209715200,
            id="N9-override-inactive",
        ),
    ],
)
def test_non_zero_requests(example: Pod, cpu: int, memory: int) -> None:
    accounted = accounted_request(example)
    assert (accounted.non_zero_cpu, accounted.non_zero_memory) == (cpu, memory)


def test_an_unsupported_pod_level_name_is_ignored() -> None:  # N9
    example = pod(container("cpu 1"), pod_level="storage 5Gi")
    assert accounted_request(example).requested == Resources(milli_cpu=1000)


@pytest.mark.parametrize(
    ("reasons", "cpu"),
    [
        pytest.param(["Deferred", "Infeasible"], 2000, id="first-of-the-type-decides"),
        pytest.param(["Infeasible", "Deferred"], 1000, id="infeasible-first"),
        pytest.param([], 2000, id="no-condition"),
    ],
)
def test_which_condition_makes_a_resize_infeasible(reasons: list[str], cpu: int) -> None:
    example = pod(
        container("cpu 2", name="c"),
        containerStatuses=[status("c", "cpu 1")],
        conditions=[{"type": "Ready"}, *(resize_pending(reason, "False") for reason in reasons)],
    )
    assert accounted_request(example).requested.milli_cpu == cpu


def test_an_infeasible_resize_drops_names_only_the_spec_has() -> None:
    example = pod(
        container("cpu 2, gpu 1", name="c"),
        containerStatuses=[status("c", "cpu 1")],
        conditions=[resize_pending("Infeasible")],
    )
    assert accounted_request(example).requested == Resources(milli_cpu=1000)
    # The dropped memory is absent, so the non-zero number takes the default.
    assert accounted_request(example).non_zero_memory == 209715200


def test_an_init_status_wins_on_a_name_clash() -> None:
    example = pod(
        container("cpu 1", name="c"),
        containerStatuses=[status("c", "cpu 3")],
        initContainerStatuses=[status("c", "cpu 2")],
    )
    assert accounted_request(example).requested.milli_cpu == 2000


@pytest.mark.parametrize(
    ("options", "cpu"),
    [
        pytest.param({}, 3000, id="both-gates-on"),
        pytest.param({"use_pod_level_status": False}, 2000, id="pod-level-status-off"),
        pytest.param({"use_pod_level": False}, 1000, id="pod-level-off"),
    ],
)
def test_gates_of_pod_level_resources(options: dict[str, bool], cpu: int) -> None:
    example = pod(
        container("cpu 1"), pod_level="cpu 2", resources={"requests": quantities("cpu 3")}
    )
    accounted = accounted_request(example, **options)
    assert accounted.requested.milli_cpu == accounted.non_zero_cpu == cpu
    assert request_value("cpu", balance_request(example, **options)) == cpu


def test_a_pod_level_allocation_counts_only_with_a_pod_level_status() -> None:
    example = pod(container("cpu 1"), pod_level="cpu 2", allocatedResources=quantities("cpu 5"))
    assert accounted_request(example).requested.milli_cpu == 2000


def test_the_filter_ignores_pod_level_requests_with_its_gate_off() -> None:
    assert filter_request(P6, use_pod_level=False).milli_cpu == 500


def test_an_init_container_of_another_policy_is_no_sidecar() -> None:
    plain = container("cpu 1", name="i") | {"restartPolicy": "Never"}
    assert accounted_request(pod(MAIN, init=[plain])).requested.milli_cpu == 1000


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("cpu 1", "cpu 1", False, id="same"),
        pytest.param("cpu 1", "cpu 2", False, id="up"),
        pytest.param("cpu 2", "cpu 1", True, id="down"),
        pytest.param("cpu 1, mem 1Gi", "cpu 1", True, id="name-gone"),
        pytest.param("cpu 1", "cpu 1, mem 1Gi", False, id="name-new"),
        pytest.param("cpu 1000500u", "cpu 1000100u", False, id="less-than-a-milli"),
        pytest.param("mem 1500m", "mem 1200m", True, id="memory-in-thousandths"),
    ],
)
def test_scaled_down(old: str, new: str, expected: bool) -> None:
    assert is_scaled_down(pod(container(old)), pod(container(new))) is expected


def test_scaled_down_reads_the_status() -> None:
    assert is_scaled_down(P7, pod(container("cpu 500m, mem 1Gi", name="c")))


def test_a_total_is_a_fresh_list() -> None:
    total = pod_requests(P1, use_status=False, use_pod_level=False)
    total["cpu"] = parse_quantity("9")
    single = pod(container("cpu 1"))
    pod_requests(single, use_status=True, use_pod_level=True).clear()
    assert accounted_request(P1).requested.milli_cpu == 250
    assert accounted_request(single).requested.milli_cpu == 1000


# --- The short way equals the formula -----------------------------------------------------------

resource_lists = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu", "weird"]),
    st.sampled_from(["0", "1", "100m", "100500u", "1Gi", "1n", "0.5", "9E", "8Ei", "-1"]),
    max_size=3,
)


def status_fields(requests: JsonObject, other: JsonObject) -> st.SearchStrategy[JsonObject]:
    """Nothing, the values of the spec, or one of them different."""
    settled: JsonObject = {"resources": {"requests": requests}, "allocatedResources": requests}
    return st.sampled_from(
        [
            {},
            settled,
            {"resources": {"requests": requests}},
            settled | {"allocatedResources": other},
            settled | {"resources": {"requests": other}},
            {"allocatedResources": other},
        ]
    )


ALLOCATED: JsonObject = {"allocatedResources": {"cpu": "2500m"}}


@st.composite
def pods(draw: st.DrawFn, *, is_plain: bool) -> Pod:
    """Pods of regular containers; plain ones have nothing else that counts."""
    lists = draw(st.lists(resource_lists, min_size=1, max_size=3))
    named = {f"c{index}": requests for index, requests in enumerate(lists)}
    spec: JsonObject = {
        "containers": [
            {"name": name, "resources": {"requests": requests}} for name, requests in named.items()
        ]
    }
    pod_status: JsonObject = {}
    if not is_plain:
        pod_status["containerStatuses"] = [
            {"name": name} | draw(status_fields(requests, draw(resource_lists)))
            for name, requests in named.items()
        ]
        pod_status["conditions"] = draw(st.sampled_from([[], [resize_pending("Infeasible")]]))
        pod_status |= draw(
            st.sampled_from([{}, {}, {"resources": {"requests": {"cpu": "2"}}, **ALLOCATED}])
        )
        # Most without, so that the statuses alone decide.
        pod_level = draw(st.sampled_from([None, None, None, {}, {"requests": {"cpu": "3"}}]))
        spec["resources"] = pod_level
    return convert(Pod, {"spec": spec, "status": pod_status})


any_pod = pods(is_plain=True) | pods(is_plain=False)


@given(any_pod, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_short_path_equals_the_formula(
    example: Pod, use_status: bool, use_pod_level: bool, cpu: bool, memory: bool
) -> None:
    short = pod_requests(
        example,
        use_status=use_status,
        use_pod_level=use_pod_level,
        cpu_default=cpu,
        memory_default=memory,
    )
    plain = requests._evaluate(
        example,
        use_status=use_status,
        use_pod_level=use_pod_level,
        use_pod_level_status=True,
        defaults=requests.default_requests(cpu=cpu, memory=memory),
    )
    assert short == plain
    assert {name: request_value(name, short) for name in short} == {
        name: request_value(name, plain) for name in plain
    }


@given(any_pod)
def test_the_short_accounting_equals_the_formula(example: Pod) -> None:
    short = accounted_request(example)
    total = requests._evaluate(
        example, use_status=True, use_pod_level=True, use_pod_level_status=True, defaults={}
    )
    is_override = requests.is_pod_level_active(example)
    non_zero = requests._evaluate(
        example,
        use_status=True,
        use_pod_level=True,
        use_pod_level_status=True,
        defaults=requests.default_requests(
            cpu=not is_override or "cpu" not in total,
            memory=not is_override or "memory" not in total,
        ),
    )
    assert short.requested == Resources.from_list(total)
    assert (short.non_zero_cpu, short.non_zero_memory) == cpu_and_memory(non_zero)


@given(any_pod)
def test_the_accounted_request_of_a_plain_shape_has_all_views(example: Pod) -> None:
    shape = PodShape.of(example)
    if not shape.is_plain:
        return
    accounted = shape.accounted
    requested = accounted.requested
    assert filter_request(example) == requested
    non_zero = (accounted.non_zero_cpu, accounted.non_zero_memory)
    for view, cpu_and_memory_of_it in (
        (score_request(example), non_zero),
        (balance_request(example), (requested.milli_cpu, requested.memory)),
    ):
        assert cpu_and_memory(view) == cpu_and_memory_of_it
        assert request_value("example.com/gpu", view) == requested.scalar.get("example.com/gpu", 0)


@pytest.mark.parametrize(
    ("example", "is_plain"),
    [
        pytest.param(P1, True, id="two-containers"),
        pytest.param(pod(container("gpu 1")), True, id="another-resource"),
        pytest.param(P3, False, id="init-containers"),
        pytest.param(P5, False, id="overhead"),
        pytest.param(P6, False, id="pod-level"),
        pytest.param(P7, False, id="resized"),
        # These count in v1.37 only (spec 12 §6).
        pytest.param(
            pod(container("cpu 1"), conditions=[resize_pending("Infeasible")]),
            False,
            id="infeasible",
        ),
        pytest.param(
            pod(container("cpu 1"), resources={"requests": quantities("cpu 2")}),
            False,
            id="amounts-of-the-pod",
        ),
        pytest.param(
            pod(container("cpu 1", name="c"), containerStatuses=[status("c", None, "cpu 2")]),
            False,
            id="allocated-alone",
        ),
        pytest.param(pod(container("cpu -1")), False, id="below-zero"),
        pytest.param(pod(container("mem 9E")), False, id="large"),
    ],
)
def test_plain_shapes(example: Pod, is_plain: bool) -> None:
    assert PodShape.of(example).is_plain is is_plain


# --- init containers: the work grows with their number, not with its square ---------------------

init_containers = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from("abc"), st.integers(0, 5))), max_size=6
)


def init_pod(containers: list[tuple[bool, dict[str, int]]]) -> Pod:
    made = [
        container(", ".join(f"{name} {count}" for name, count in amounts.items()), sidecar=sidecar)
        for sidecar, amounts in containers
    ]
    return convert(Pod, {"spec": {"containers": [container("b 1")], "initContainers": made}})


@given(init_containers)
def test_init_containers_peak_over_all_names(containers: list[tuple[bool, dict[str, int]]]) -> None:
    """Compared with every name at every step."""
    sidecars: dict[str, int] = {}
    total = {"b": 1}
    peak: dict[str, int] = {}
    for is_sidecar, amounts in containers:
        during = sidecars | {name: sidecars.get(name, 0) + amounts[name] for name in amounts}
        if is_sidecar:
            sidecars = during
            total |= {name: total.get(name, 0) + amounts[name] for name in amounts}
        peak |= {name: max(peak.get(name, 0), during[name]) for name in during}
    total |= {name: max(total.get(name, 0), peak[name]) for name in peak}
    found = pod_requests(init_pod(containers), use_status=False, use_pod_level=True)
    assert {name: quantity.value() for name, quantity in found.items()} == total


@pytest.mark.parametrize("sidecar", [True, False])
def test_many_init_containers_with_own_resources(
    monkeypatch: pytest.MonkeyPatch, sidecar: bool
) -> None:
    compared: list[int] = []
    raise_to = requests.raise_to

    def counted(total: ResourceList, amounts: ResourceList) -> None:
        compared.append(len(amounts))
        raise_to(total, amounts)

    monkeypatch.setattr(requests, "raise_to", counted)
    count = 200
    # One sidecar in front, so that plain ones come on top of something.
    pod = init_pod([(sidecar or not i, {f"example.com/r{i}": 1}) for i in range(count)])
    assert len(filter_request(pod).scalar) == count
    assert sum(compared) == 2 * count
