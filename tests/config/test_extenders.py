"""The configuration of extenders (spec 09 §3.5.9, 04 §13.1)."""

import pytest

from kubestow.config.extenders import (
    ExtenderConfig,
    ManagedResource,
    in_call_order,
    resources_ignored_by_scheduler,
    validate_extenders,
)
from kubestow.config.scalars import seconds


def managing(*names: str) -> ExtenderConfig:
    return ExtenderConfig(managed_resources=tuple(ManagedResource(name=name) for name in names))


@pytest.mark.parametrize(
    ("extenders", "errors"),
    [
        pytest.param([ExtenderConfig(prioritize_verb="p", weight=1)], [], id="weight-of-1"),
        pytest.param([ExtenderConfig(weight=-3)], [], id="no-scores-no-weight"),
        pytest.param(
            [ExtenderConfig(prioritize_verb="p")],
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="no-weight",
        ),
        pytest.param(
            [ExtenderConfig(bind_verb="b"), ExtenderConfig(), ExtenderConfig(bind_verb="b")],
            [
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ],
            id="two-binders",
        ),
        pytest.param(
            [managing("cpu"), managing("example.com/a", "example.com/b", "example.com/a")],
            [
                'extenders[0].managedResources[0].name: Invalid value: "cpu": '
                "is an invalid extended resource name",
                'extenders[1].managedResources[2].name: Invalid value: "example.com/a": '
                "duplicate extender managed resource name",
            ],
            id="resources",
        ),
        pytest.param(
            [managing("a/b/")],
            [
                'extenders[0].managedResources[0].name: Invalid value: "a/b/": a valid label key '
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') "
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ],
            id="no-qualified-name",
        ),
    ],
)
def test_validation(extenders: list[ExtenderConfig], errors: list[str]) -> None:
    assert validate_extenders(extenders, "extenders") == errors


def test_ignorable_extenders_come_last() -> None:  # 04 §13.6 example 7
    extenders = [
        ExtenderConfig(url_prefix=name, ignorable=name in ("E1", "E3"))
        for name in ("E1", "E2", "E3", "E4")
    ]
    order = [extender.url_prefix for extender in in_call_order(extenders)]
    assert order == ["E2", "E4", "E1", "E3"]


def test_a_timeout_of_zero_means_five_seconds() -> None:
    assert ExtenderConfig().timeout_s == 5
    assert ExtenderConfig(http_timeout=seconds(3)).timeout_s == 3


def test_resources_left_to_extenders() -> None:
    resources = (ManagedResource(name="a", ignored_by_scheduler=True), ManagedResource(name="b"))
    assert resources_ignored_by_scheduler([ExtenderConfig(managed_resources=resources)]) == ("a",)
