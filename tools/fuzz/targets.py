"""What is fuzzed: each decoder and parser, its inputs, and the errors it may raise."""

# pyright: basic
# Inputs are values of any type, on purpose.

import asyncio
import json
import struct
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import yaml
from hypothesis import strategies as st

from kubestow.api.check import check_object
from kubestow.api.decode import KINDS, decode_json, encode_json
from kubestow.api.duration import parse_duration
from kubestow.api.files import load_documents
from kubestow.api.labels import SelectorError, parse_label_selector
from kubestow.api.meta import LabelSelector
from kubestow.api.pod import Pod
from kubestow.api.quantity import parse_quantity
from kubestow.apiserver.http.bodies import decoded_body
from kubestow.apiserver.http.protobuf import CONTENT_TYPE as PROTOBUF
from kubestow.apiserver.http.query import Query
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.selectors import parse_field_selector, parse_label_query
from kubestow.apiserver.writes.json_patch import json_patch
from kubestow.apiserver.writes.patch import apply_patch
from kubestow.apiserver.writes.server_side_apply import Writer, applied
from kubestow.cel.environment import Environment
from kubestow.cel.errors import CompileError
from kubestow.cel.static_types import DYN
from kubestow.cluster.documents import as_object
from kubestow.cluster.http.error_response import response_error
from kubestow.cluster.http.kubeconfig import load_kubeconfig
from kubestow.cluster.http.pages import decode_page
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.cluster.http.watch_stream import WatchStream
from kubestow.cluster.http.wire import ResponseParser, WireError
from kubestow.cluster.resources import PODS, default_resources
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import parse_gates
from kubestow.engine.extenders.codec import (
    decode_bind_answer,
    decode_filter_answer,
    decode_preempt_answer,
    decode_prioritize_answer,
)
from kubestow.errors import KubestowError
from kubestow.recording.file import MAGIC, RecordingReader
from kubestow.recording.format import (
    Answer,
    ClockSet,
    CycleBegan,
    Header,
    Posted,
    Put,
    RecordedAttempt,
    Refusal,
    Removed,
    TurnsPassed,
)
from kubestow.service.commands.replay.file import replay_setup
from kubestow.service.options import parse_options
from kubestow.simulator.comparison.recorded import read_recording
from kubestow.simulator.conformance.recording import load_recording
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.simulator.traces.alibaba import alibaba_scenario
from kubestow.simulator.traces.azure import azure_scenario
from kubestow.simulator.traces.openb import openb_scenario
from kubestow.simulator.traces.plain import plain_scenario
from kubestow.simulator.traces.use_files import series_of
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing.clock import ManualClock
from tools.fuzz.documents import DEPLOYMENT, EXAMPLES, NODE, POD, changed
from tools.fuzz.texts import damaged, damaged_bytes, json_values


class Target(NamedTuple):
    name: str
    inputs: st.SearchStrategy[Any]
    run: Callable[[Any], object]
    # Every other exception is a defect.
    errors: tuple[type[Exception], ...] = (KubestowError,)

    def check(self, value: object) -> None:
        """Nothing, or the exception that is a defect."""
        with suppress(*self.errors):
            self.run(value)


# --- Objects ----------------------------------------------------------------------------------


def _decode_object(document: Any) -> None:
    kind = as_object(document).get("kind")
    cls = KINDS.get(kind, Pod) if isinstance(kind, str) else Pod
    obj = decode_json(cls, msgspec.json.encode(document))
    check_object(obj)
    assert decode_json(cls, encode_json(obj)) == obj


def _quantity(text: str) -> None:
    quantity = parse_quantity(text)
    assert parse_quantity(str(quantity)) == quantity
    quantity.value()
    quantity.milli_value()


def _selector(document: Any) -> None:
    selector = parse_label_selector(msgspec.convert(document, LabelSelector))
    selector.matches({"app": "web"})


_SELECTOR: Final = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
}


# --- Files ------------------------------------------------------------------------------------


def _from_file(read: Callable[[Path], object], suffix: str) -> Callable[[bytes], None]:
    def run(raw: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            file.write(raw)
            file.flush()
            read(Path(file.name))

    return run


def _manifest(path: Path) -> None:
    load_documents([path])


def _kubeconfig(path: Path) -> None:
    load_kubeconfig(str(path), ManualClock())


_KUBECONFIG: Final = b"""apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://h:6443", certificate-authority-data: eA==}}]
users: [{name: u, user: {token: t, exec: {command: x, args: [a], env: [{name: a, value: b}]}}}]
contexts: [{name: c, context: {cluster: c, user: u, namespace: n}}]
"""
_CONFIG: Final = b"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 15s}
clientConnection: {qps: 50, burst: 100}
podInitialBackoffSeconds: 1
percentageOfNodesToScore: 50
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 5}], disabled: [{name: "*"}]}}
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 5}
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 1}]}}
extenders: [{urlPrefix: "http://x", filterVerb: f, weight: 1, httpTimeout: 1s}]
"""
_RECORDING: Final = (
    b'{"upstream": "v1.36.4", "family": "f", "scenarios": [{"name": "x", "family": "f",'
    b' "objects": {}, "incoming": [], "expected": [], "gates": {}}]}'
)
_POD_TEXT: Final = msgspec.json.encode(POD)
_NODE_TEXT: Final = msgspec.json.encode(NODE)
_HEADER: Final = msgspec.json.encode(
    Header(
        program="1",
        origin="simulate",
        started_ns=1,
        config=_CONFIG.replace(b"extenders", b"#").decode(),
        gates={"GenericWorkload": False},
        chance=json.dumps(np.random.default_rng(0).bit_generator.state),
    )
)
_RECORDS: Final = msgspec.msgpack.encode(
    [
        TurnsPassed(0, 16),
        Put(1, "Node", _NODE_TEXT),
        Put(1, "Pod", _POD_TEXT),
        TurnsPassed(2, 3),
        ClockSet(3, 5),
        RecordedAttempt(4, "default/web-1", "u", "n1", "", None, ("a/b",), 1, 1, 7),
        CycleBegan(4, "default/web-1", "u"),
        Answer(5, "bind", "Pod", "default", "web-1", b"", Refusal("GoneError", 410, "r", "m")),
        Answer(5, "patch", "Pod", "default", "web-1", _POD_TEXT, None, 1),
        Posted(6, 5, 200, b"{}", ""),
        Removed(7, "Node", "", "n1", _NODE_TEXT),
        Removed(8, "Pod", "default", "web-1", b""),
    ]
)


def _recording_file(header: bytes, records: bytes) -> bytes:
    blocks = [MAGIC]
    for content in (header, records):
        payload = zlib.compress(content)
        blocks += (struct.pack("<II", len(payload), zlib.crc32(payload)), payload)
    return b"".join(blocks)


def _replay(path: Path) -> None:
    with suppress(KubestowError):
        read_recording(path)
    reader = RecordingReader(path)
    setup = replay_setup(reader, None)

    async def run() -> None:
        answers = RecordedAnswers.of(reader)
        replay = Replay(reader.header, setup.config, setup.gates, setup.registry, answers)
        await replay.run(reader)

    run_in_virtual_time(run())


_PLAIN_TRACE: Final = (
    b"name,namespace,at,duration,cpu,memory,gpu,priority,count\nweb,shop,1m,2h,500m,1Gi,1,-5,2\n"
)
_PLAIN_NODES: Final = b"name,at,count,cpu,zone,label.pool,a.b/c\nn,0,2,4,z,p,1\n"
_OPENB_NODES: Final = b"sn,cpu_milli,memory_mib,gpu,model\nn,8000,1024,2,T4\n"
_OPENB_PODS: Final = (
    b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    b"deletion_time,scheduled_time\np,1,2,1,500,T4|A10,LS,Running,0,9,3\n"
)
_MANIFESTS: Final = tuple(
    form(example)
    for example in EXAMPLES
    for form in (msgspec.json.encode, lambda value: yaml.safe_dump(value).encode())
)


# --- The wire ---------------------------------------------------------------------------------

_FRAME: Final = msgspec.json.encode({"type": "ADDED", "object": POD}) + b"\n"
_STATUS: Final = b'{"kind":"Status","status":"Failure","message":"m","reason":"Gone","code":410}'
_ERROR_FRAME: Final = b'{"type":"ERROR","object":%s}\n' % _STATUS
_PAGE: Final = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": [POD, POD]})
_ANSWERS: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 Not\r\nRetry-After: 5\r\n\r\nx",
)


def _watch(raw: bytes) -> None:
    stream: WatchStream[Pod] = WatchStream(Pod)
    half = len(raw) // 2
    for part in (raw[:half], raw[half:], b"\n"):
        stream.feed(part)
        for event in stream.events_nowait():
            assert isinstance(event.object, Pod)
    # What ended the watch is an ApiError, which `next_batch` would raise.


def _wire(raw: bytes) -> None:
    parser = ResponseParser()
    parser.feed(raw)
    parser.take_body()
    parser.feed_eof()


def _extender(body: bytes) -> None:
    for decode in (
        lambda body: decode_filter_answer(body, takes_names=True),
        lambda body: decode_filter_answer(body, takes_names=False),
        decode_prioritize_answer,
        decode_bind_answer,
        decode_preempt_answer,
    ):
        with suppress(KubestowError):
            decode(body)


_EXTENDER_ANSWERS: Final = (
    b'{"NodeNames": ["a"], "FailedNodes": {"b": "x"}, "Error": ""}',
    b'{"Nodes": {"items": [{"metadata": {"name": "a"}}]}}',
    b'[{"Host": "a", "Score": 5}]',
    b'{"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}}',
)


# --- The embedded server ----------------------------------------------------------------------

_QUERY_NAMES: Final = (
    "limit", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "dryRun", "watch",
)  # fmt: skip
_POD_SCHEMA: Final = schema_of("", "v1", "Pod")
_WRITER: Final = Writer("m", "2026-01-31T12:00:00Z")
_PROTOBUF: Final = (
    b"k8s\x00\n\r\n\x02v1\x12\x03Pod\x12\x1e\n\x05\n\x03abc\x12\x15\x12\x13\n\x04main\x12\x05web:1"
    b"\x1a\x00\x22\x00",
    b"k8s\x00\n\x13\n\x02v1\x12\tNamespace\x12\x07\n\x05\n\x03abc",
)


def _query(parameters: dict[str, str]) -> None:
    query = Query(parameters)
    for read in (
        query.requested_version,
        lambda: query.number("limit"),
        lambda: query.number("timeoutSeconds"),
        lambda: query.flag("watch"),
        lambda: query.is_dry_run,
    ):
        with suppress(KubestowError):
            read()


def _patch(values: tuple[Any, Any]) -> None:
    document, patch = values
    for patch_type in ("merge", "strategic"):
        with suppress(KubestowError):
            apply_patch(document, as_object(patch), patch_type, schema=_POD_SCHEMA)


def _apply(documents: tuple[Any, Any]) -> None:
    first, second = documents
    live = applied(None, as_object(first), _WRITER, _POD_SCHEMA, is_forced=False)
    live = applied(live, POD, Writer("other", _WRITER.time), _POD_SCHEMA, is_forced=True)
    applied(live, as_object(second), _WRITER, _POD_SCHEMA, is_forced=False)


def _create(document: Any) -> None:
    cluster = MemoryCluster(ManualClock())
    cluster.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}])
    document = as_object(document)
    kind, api_version = document.get("kind"), document.get("apiVersion")
    resource = PODS
    if isinstance(kind, str) and isinstance(api_version, str):
        resource = default_resources().of_kind(api_version, kind)
    cluster.create(resource, document)


_OPERATIONS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(("add", "remove", "replace", "copy", "move", "test", "x")),
            "path": damaged("/metadata/labels/app", "/spec/containers/0", "/spec/containers/-"),
        },
        optional={"value": json_values, "from": damaged("/metadata", "/spec/tolerations/0")},
    ),
    max_size=4,
)


_FLAGS: Final = (
    "--v=5", "--feature-gates=AllAlpha=true", "--secure-port=10259", "-v", "5", "--leader-elect",
    "--leader-elect-lease-duration=15s", "--bind-address=::1", "--help", "--tls-cipher-suites=a,b",
    "--kube-api-qps=5.5", "--vmodule=a=1", "--version=raw", "--tls-sni-cert-key=a,b:c",
    "--log-json-info-buffer-size=1Ki",
)  # fmt: skip


# --- All of them ------------------------------------------------------------------------------

TARGETS: Final = (
    Target("object", changed(*EXAMPLES), _decode_object),
    Target("quantity", damaged("500m", "2Gi", "1.5e3", "-0.5Ki", "1E"), _quantity, (ValueError,)),
    Target(
        "label selector",
        changed(_SELECTOR),
        _selector,
        (KubestowError, SelectorError, msgspec.ValidationError),
    ),
    Target("label query", damaged("app=web,tier in (a,b),!old,x!=y,n>5"), parse_label_query),
    Target(
        "field selector",
        damaged("status.phase!=Succeeded,spec.nodeName=n1", "metadata.name==a"),
        lambda text: parse_field_selector(PODS, text),
    ),
    Target("duration", damaged("1h30m", "1.5s", "-10ms", "0"), parse_duration, (ValueError,)),
    Target("feature gates", damaged("A=true,B=false", "kube:A=true"), lambda t: parse_gates([t])),
    Target(
        "flags",
        st.lists(damaged(*_FLAGS), max_size=3),
        parse_options,
    ),
    Target("manifest, YAML", damaged_bytes(*_MANIFESTS), _from_file(_manifest, ".yaml")),
    Target("manifest, JSON", damaged_bytes(*_MANIFESTS[::2]), _from_file(_manifest, ".json")),
    Target("configuration", damaged_bytes(_CONFIG), decode_config),
    Target("kubeconfig", damaged_bytes(_KUBECONFIG), _from_file(_kubeconfig, "")),
    Target("recording", damaged_bytes(_RECORDING), _from_file(load_recording, ".json")),
    Target(
        "file of a run",
        damaged_bytes(_recording_file(_HEADER, _RECORDS)),
        _from_file(_replay, ".rec"),
    ),
    Target(
        "header of a run",
        damaged_bytes(_HEADER).map(lambda header: _recording_file(header, _RECORDS)),
        _from_file(_replay, ".rec"),
    ),
    Target(
        "records of a run",
        damaged_bytes(_RECORDS).map(lambda records: _recording_file(_HEADER, records)),
        _from_file(_replay, ".rec"),
    ),
    Target(
        "trace, CSV",
        damaged_bytes(_PLAIN_TRACE),
        _from_file(lambda path: plain_scenario(path), ".csv"),
    ),
    Target(
        "nodes of a trace, CSV",
        damaged_bytes(_PLAIN_NODES),
        _from_file(lambda path: plain_scenario(path, nodes=path), ".csv"),
    ),
    Target(
        "trace, openb",
        damaged_bytes(_OPENB_NODES, _OPENB_PODS),
        _from_file(lambda path: openb_scenario(path, path), ".csv"),
    ),
    Target(
        "trace, Alibaba 2018",
        damaged_bytes(
            b"c_1,m_1,0,app_1,started,400,800,1.56\nc_1,m_1,90,app_1,stopped,400,800,1.56\n"
        ),
        _from_file(lambda path: alibaba_scenario(path, path), ".csv"),
    ),
    Target(
        "trace, Azure 2019",
        damaged_bytes(
            b"a/b+c==,s,d,0,3600,99.5,20.25,80.5,Interactive,4,8\nx,s,d,1,2,,,,,>24,>64\n"
        ),
        _from_file(lambda path: azure_scenario(path, ()), ".csv"),
    ),
    Target(
        "use of a trace, Alibaba 2018",
        damaged_bytes(b"c_1,m_1,0,37,80,1.1,,2,3.5,4.5,6\nc_1,m_1,300,,81\n"),
        _from_file(lambda path: series_of(path, "alibaba2018", start_s=0.0), ".csv"),
    ),
    Target(
        "use of a trace, Azure 2019",
        damaged_bytes(b"0,a/b+c==,1.5,80.25,20\n300,a/b+c==,1,2,1.5\n"),
        _from_file(lambda path: series_of(path, "azure2019", start_s=0.0), ".csv"),
    ),
    Target(
        "CEL",
        damaged(
            'device.attributes["d.com"].x == "y" && device.driver in ["a"]',
            "[1, 2u, 3.0, 0x1F, b'a', r'\\\\', null].all(x, x > 1 ? true : !false)",
            'size("\\u00e9\\x41") - 1 * 2 / 3 % 4 < 5 || {"a": 1}.a.b(c)',
        ),
        Environment({"device": DYN}).compile,
        (CompileError,),
    ),
    Target("watch frames", damaged_bytes(_FRAME, _FRAME * 2, _ERROR_FRAME + _FRAME), _watch),
    Target(
        "list page",
        damaged_bytes(_PAGE),
        lambda raw: asyncio.run(decode_page(Pod, raw, UndecodableObjects())),
    ),
    Target(
        "error response",
        damaged_bytes(_STATUS, b"<html>"),
        lambda raw: response_error(500, raw, method="GET", path="/x"),
    ),
    Target("HTTP answer", damaged_bytes(*_ANSWERS), _wire, (WireError,)),
    Target("extender answer", damaged_bytes(*_EXTENDER_ANSWERS), _extender),
    Target("body, protobuf", damaged_bytes(*_PROTOBUF), lambda raw: decoded_body(raw, PROTOBUF)),
    Target(
        "body, JSON and YAML",
        st.tuples(
            damaged_bytes(*_MANIFESTS), st.sampled_from(("application/json", "application/yaml"))
        ),
        lambda body: decoded_body(*body),
    ),
    Target(
        "query",
        st.dictionaries(st.sampled_from(_QUERY_NAMES), damaged("5", "", "true", "NotOlderThan")),
        _query,
    ),
    Target("JSON patch", _OPERATIONS | json_values, lambda patch: json_patch(POD, patch)),
    Target("merge patch", st.tuples(changed(POD), changed(POD) | json_values), _patch),
    Target("apply", st.tuples(changed(POD), changed(POD)), _apply),
    Target("create", changed(POD, NODE, DEPLOYMENT), _create),
)
