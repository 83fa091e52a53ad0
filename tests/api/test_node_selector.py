"""Node selectors and node affinity (spec 01 §8, 05 §2.5)."""

import re

import pytest

from kubestow.api.labels import SelectorError
from kubestow.api.node_selector import (
    ANY_NODE,
    PreferredTerms,
    RequiredNodeAffinity,
    compile_node_selector,
)
from kubestow.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PreferredSchedulingTerm,
)

LABELS = {"disk": "ssd", "cpus": "16", "gen": "007", "txt": "abc"}
NOT_A_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NOT_AN_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"


def need(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(
    *expressions: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def field_term(*fields: NodeSelectorRequirement) -> NodeSelectorTerm:
    return term(fields=fields)


def selecting(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def make_pod(
    node_selector: dict[str, str] | None = None, required: NodeSelector | None = None
) -> Pod:
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    return Pod(spec=PodSpec(node_selector=node_selector, affinity=affinity))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], False, id="S1-no-terms"),
        pytest.param([term()], False, id="S1-empty-term"),
        pytest.param([term(need("cpus", "Gt", "15"))], True, id="S2-greater"),
        pytest.param([term(need("cpus", "Gt", "16"))], False, id="S2-equal"),
        pytest.param([term(need("gen", "Lt", "8"))], True, id="S2-leading-zeros"),
        pytest.param([term(need("txt", "Gt", "0"))], False, id="S3-no-number"),
        pytest.param([term(need("missing", "Lt", "9"))], False, id="S3-missing"),
        pytest.param([term(need("disk", "In")), term(need("disk", "Exists"))], True, id="S5"),
        pytest.param([field_term(need("metadata.name", "In", "n1"))], True, id="S6-in"),
        pytest.param([field_term(need("metadata.name", "NotIn", "n1"))], False, id="S6-not-in"),
        pytest.param([field_term(need("foo", "NotIn", "x"))], True, id="S7-unknown-not-in"),
        pytest.param([field_term(need("foo", "In", ""))], True, id="S7-unknown-reads-empty"),
        pytest.param([field_term(need("foo", "In", "x"))], False, id="unknown-in"),
        pytest.param(
            [term(need("disk", "In", "hdd"), fields=(need("metadata.name", "In", "n1"),))],
            False,
            id="S8-all-of-a-term",
        ),
        pytest.param(
            [term(need("disk", "In", "hdd")), term(need("txt", "Exists"))], True, id="any-term"
        ),
        pytest.param(
            [term(need("x", "Gt", "4.5")), term(need("disk", "In", "ssd"))],
            True,
            id="05-7.4-ex4-poisoned-term-is-skipped",
        ),
    ],
)
def test_node_selector_matches(terms: list[NodeSelectorTerm], expected: bool) -> None:
    assert compile_node_selector(selecting(*terms)).matches(LABELS, "n1") is expected


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        pytest.param([term(), field_term(need("foo", "In", ""))], "", id="none"),
        pytest.param(
            [term(need("cpus", "Gt", "-1"))],
            f'nodeSelectorTerms[0].matchExpressions[0].values[0][cpus]: Invalid value: "-1":'
            f" {NOT_A_VALUE}",
            id="S4-threshold-that-is-no-label-value",
        ),
        pytest.param(
            [term(), field_term(need("metadata.name", "In", "n1", "n2"))],
            'nodeSelectorTerms[1].matchFields[0].values: Invalid value: ["n1","n2"]:'
            " must have one element",
            id="S6-two-names-after-an-empty-term",
        ),
        pytest.param(
            [field_term(NodeSelectorRequirement(key="metadata.name", operator="NotIn"))],
            "nodeSelectorTerms[0].matchFields[0].values: Invalid value: null:"
            " must have one element",
            id="no-name",
        ),
        pytest.param(
            [term(need("disk", "Foo"))],
            'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Foo":'
            ' supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            id="label-operator",
        ),
        pytest.param(
            [field_term(need("metadata.name", "Exists"))],
            'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists":'
            ' supported values: "In", "NotIn"',
            id="field-operator",
        ),
        pytest.param(
            [term(need("disk", "In"))],
            "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: []:"
            " for 'in', 'notin' operators, values set can't be empty",
            id="given-but-empty",
        ),
        pytest.param(
            [term(NodeSelectorRequirement(key="disk", operator="In"))],
            "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null:"
            " for 'in', 'notin' operators, values set can't be empty",
            id="absent",
        ),
        pytest.param(
            [
                term(need("a", "Gt", "x"), need("b", "Exists"), need("c", "Lt", "y")),
                field_term(need("metadata.name", "In", "n1", "n2")),
            ],
            "[nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value:"
            f' "x": {NOT_AN_INTEGER},'
            " nodeSelectorTerms[0].matchExpressions[2].values[0]: Invalid value:"
            f' "y": {NOT_AN_INTEGER},'
            ' nodeSelectorTerms[1].matchFields[0].values: Invalid value: ["n1","n2"]:'
            " must have one element]",
            id="all-mistakes-in-order",
        ),
    ],
)
def test_errors_are_collected(terms: list[NodeSelectorTerm], error: str) -> None:
    assert compile_node_selector(selecting(*terms)).error == error


def test_an_invalid_term_never_matches() -> None:
    half_right = term(need("disk", "Exists"), need("disk", "In"))
    assert not compile_node_selector(selecting(half_right)).matches(LABELS, "n1")


def test_node_without_name_satisfies_all_fields() -> None:
    selector = compile_node_selector(selecting(field_term(need("metadata.name", "In", "n1"))))
    assert selector.matches(LABELS, "")
    assert not selector.matches(LABELS, "n2")


def test_strict_compilation_raises_with_the_path() -> None:
    selector = selecting(term(need("a", "Gt", "abc")))
    message = (
        f'p.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "abc":'
        f" {NOT_AN_INTEGER}"
    )
    with pytest.raises(SelectorError, match=f"^{re.escape(message)}$"):
        compile_node_selector(selector, strict=True, path="p")
    assert compile_node_selector(selecting(term()), strict=True).terms == ()


def test_compiled_selectors_compare_by_content() -> None:
    left = compile_node_selector(selecting(term(need("a", "In", "1", "2"))))
    right = compile_node_selector(selecting(term(need("a", "In", "2", "1")), term()))
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("node_selector", "required", "labels", "expected"),
    [
        pytest.param(None, None, {}, True, id="nothing-asked"),
        pytest.param({}, None, {}, True, id="empty-map"),
        pytest.param({"disk": "ssd"}, None, {"disk": "ssd", "zone": "a"}, True, id="05-7.4-ex1"),
        pytest.param({"disk": "ssd"}, None, {"disk": "hdd"}, False, id="05-7.4-ex1-other"),
        pytest.param({"disk": "ssd"}, None, {}, False, id="05-7.4-ex1-missing"),
        pytest.param({"-": "?"}, None, {"-": "?"}, True, id="map-is-not-validated"),
        pytest.param(None, selecting(), {"a": "b"}, False, id="05-7.4-ex3-zero-terms"),
        pytest.param(
            None,
            selecting(term(need("zone", "In", "a")), term(need("gpu", "Exists"))),
            {"gpu": ""},
            True,
            id="05-7.4-ex2",
        ),
        pytest.param(
            {"disk": "ssd"}, selecting(term(need("zone", "Exists"))), {"zone": ""}, False, id="and"
        ),
    ],
)
def test_required_affinity_is_map_and_terms(
    node_selector: dict[str, str] | None,
    required: NodeSelector | None,
    labels: dict[str, str],
    expected: bool,
) -> None:
    required_affinity = RequiredNodeAffinity.of(make_pod(node_selector, required))
    assert required_affinity.matches(labels, "n1") is expected


def test_pods_without_requirements_share_one_object() -> None:
    assert RequiredNodeAffinity.of(Pod()) is ANY_NODE
    assert ANY_NODE.is_any
    assert not RequiredNodeAffinity.of(make_pod({"a": "b"})).is_any
    assert not RequiredNodeAffinity.of(make_pod(required=selecting())).is_any


def test_an_error_is_reported_only_where_terms_were_evaluated_and_none_matched() -> None:
    required = selecting(term(need("x", "Gt", "4.5")), term(need("zone", "In", "a")))
    affinity = RequiredNodeAffinity.of(make_pod({"disk": "ssd"}, required))
    assert affinity.error.startswith("nodeSelectorTerms[0].matchExpressions[0].values[0]: ")
    assert affinity.match_error({"disk": "ssd", "zone": "b"}, "n1") == affinity.error
    assert affinity.match_error({"disk": "ssd", "zone": "a"}, "n1") == ""
    assert affinity.match_error({"disk": "hdd", "zone": "b"}, "n1") == ""


def test_required_affinity_compares_by_content() -> None:
    left = RequiredNodeAffinity.of(make_pod({"a": "1", "b": "2"}))
    right = RequiredNodeAffinity.of(make_pod({"b": "2", "a": "1"}))
    assert left == right
    assert hash(left) == hash(right)


def prefer(weight: int, preference: NodeSelectorTerm) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(weight=weight, preference=preference)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({"zone": "a"}, 20), ({"zone": "a", "disk": "ssd"}, 50), ({}, 0), ({"disk": "ssd"}, 30)],
)
def test_preferred_score_sums_matching_weights_05_7_4_ex8(
    labels: dict[str, str], expected: int
) -> None:
    terms = PreferredTerms.of(
        [prefer(20, term(need("zone", "In", "a"))), prefer(30, term(need("disk", "In", "ssd")))]
    )
    assert terms.score(labels, "n1") == expected


def test_preferred_terms_that_cannot_count_are_not_parsed() -> None:
    terms = PreferredTerms.of([prefer(0, term(need("a", "Bogus"))), prefer(5, term())])
    assert terms.terms == ()
    assert terms.score({}, "n1") == 0


def test_one_invalid_preferred_term_is_an_error_for_all() -> None:
    terms = [
        prefer(0, term(need("a", "Bogus"))),
        prefer(1, term(need("a", "Exists"))),
        prefer(1, term(need("a", "Gt", "abc"))),
    ]
    message = f'[2].matchExpressions[0].values[0]: Invalid value: "abc": {NOT_AN_INTEGER}'
    with pytest.raises(SelectorError, match=f"^{re.escape(message)}$"):
        PreferredTerms.of(terms)
