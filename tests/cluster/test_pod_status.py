"""Patches of a pod's status (spec 09 §4.6, examples of W2; spec 04 §14, step 7)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.decode import convert, to_document
from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, PodStatus
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.writes.patch import strategic_merge_patch
from kubestow.cluster.pod_status import changed_condition, pod_status_patch

OLD = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 1, 2, tzinfo=UTC)
MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."
REJECTED = Condition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message=MESSAGE,
    observed_generation=1,
    last_transition_time=OLD,
)


def replaced(condition: Condition, **changes: Any) -> Condition:
    return convert(Condition, {**to_document(condition), **changes})


def pod(*conditions: Condition, nominated: str = "") -> Pod:
    return Pod(status=PodStatus(conditions=conditions, nominated_node_name=nominated))


# --- Which condition is written ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            (), REJECTED, replaced(REJECTED, lastTransitionTime=NOW), id="W2.1-first-time"
        ),
        pytest.param((REJECTED,), REJECTED, None, id="W2.2-same-message"),
        pytest.param(
            (REJECTED,),
            replaced(REJECTED, message="new", lastTransitionTime=NOW),
            replaced(REJECTED, message="new"),
            id="W2.3-message-changes-time-stays",
        ),
        pytest.param(
            (REJECTED,),
            replaced(REJECTED, reason="SchedulerError"),
            replaced(REJECTED, reason="SchedulerError"),
            id="W2.5-reason-changes-time-stays",
        ),
        pytest.param(
            (REJECTED,), replaced(REJECTED, observedGeneration=2), None, id="generation-alone"
        ),
        pytest.param(
            (replaced(REJECTED, status="True"),),
            REJECTED,
            replaced(REJECTED, lastTransitionTime=NOW),
            id="status-changes-time-moves",
        ),
        pytest.param(
            (replaced(REJECTED, type="Other"),),
            REJECTED,
            replaced(REJECTED, lastTransitionTime=NOW),
            id="another-type",
        ),
    ],
)
def test_a_condition_is_written_when_it_changes(
    old: tuple[Condition, ...], new: Condition, expected: Condition | None
):
    assert changed_condition(pod(*old), new, now=NOW) == expected


# --- The patch --------------------------------------------------------------------------------

WRITTEN = {
    "lastProbeTime": None,
    "lastTransitionTime": "2024-01-01T00:00:00Z",
    "message": MESSAGE,
    "observedGeneration": 1,
    "reason": "Unschedulable",
    "status": "False",
    "type": "PodScheduled",
}
READY = Condition(type="Ready", status="True")


@pytest.mark.parametrize(
    ("before", "changes", "expected"),
    [
        pytest.param(
            pod(),
            {"condition": REJECTED},
            {"status": {"conditions": [WRITTEN]}},
            id="W2.1-first-condition",
        ),
        pytest.param(pod(REJECTED), {"condition": REJECTED}, {}, id="W2.2-nothing-to-send"),
        pytest.param(
            pod(REJECTED),
            {"condition": replaced(REJECTED, message="new")},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                    "conditions": [{"message": "new", "type": "PodScheduled"}],
                }
            },
            id="W2.3-only-what-changed",
        ),
        pytest.param(
            pod(REJECTED),
            {"condition": REJECTED, "nominated_node_name": "n1"},
            {"status": {"nominatedNodeName": "n1"}},
            id="W2.4-nomination-alone",
        ),
        pytest.param(
            pod(nominated="n1"),
            {"nominated_node_name": ""},
            {"status": {"nominatedNodeName": None}},
            id="W4-nomination-taken-back",
        ),
        pytest.param(pod(nominated="n1"), {"nominated_node_name": "n1"}, {}, id="same-node"),
        pytest.param(pod(nominated="n1"), {}, {}, id="nothing-asked"),
        pytest.param(
            pod(READY),
            {"condition": REJECTED},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
                    "conditions": [WRITTEN],
                }
            },
            id="beside-another-condition",
        ),
        pytest.param(
            pod(REJECTED),
            {"condition": replaced(REJECTED, message="", status="True")},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                    "conditions": [{"message": None, "status": "True", "type": "PodScheduled"}],
                }
            },
            id="empty-text-is-removed",
        ),
    ],
)
def test_the_patch_names_only_what_differs(before: Pod, changes: Any, expected: Any):
    if expected:
        expected = {"metadata": {"uid": ""}, **expected}
    assert pod_status_patch(before, **changes) == expected


texts = st.sampled_from(["", "a", "b"])
conditions = st.builds(
    Condition,
    type=st.sampled_from(["PodScheduled", "Ready", "DisruptionTarget"]),
    status=st.sampled_from(["True", "False"]),
    reason=texts,
    message=texts,
    observed_generation=st.integers(0, 2),
    last_transition_time=st.sampled_from([None, OLD, NOW]),
)


@given(st.lists(conditions, unique_by=lambda c: c.type), conditions, texts, st.none() | texts)
def test_a_server_that_applies_the_patch_has_the_condition_and_the_nomination(
    before: list[Condition], condition: Condition, nominated: str, wanted: str | None
):
    old = pod(*before, nominated=nominated)
    patch = pod_status_patch(old, condition=condition, nominated_node_name=wanted)
    patched = convert(
        Pod, strategic_merge_patch(to_document(old), patch, schema_of("", "v1", "Pod"))
    )
    others = [known for known in before if known.type != condition.type]
    assert [known for known in patched.status.conditions if known.type != condition.type] == others
    assert [known for known in patched.status.conditions if known.type == condition.type] == [
        condition
    ]
    assert patched.status.nominated_node_name == (nominated if wanted is None else wanted)
