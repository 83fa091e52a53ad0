"""Health checks and their texts (spec 09 §7, examples 1 to 4)."""

import pytest

from kubestow.logs import level_of
from kubestow.service.serving.health import HealthEndpoint, HealthSlis, NamedCheck, always_ok
from kubestow.service.serving.serving import health_endpoints


class Process:
    def __init__(
        self, *, is_stopping: bool = False, has_synced: bool = True, stall: str | None = None
    ) -> None:
        self.is_stopping = is_stopping
        self.stall = stall
        self.has_synced = has_synced
        self.is_active = True

    def pods(self) -> tuple[()]:
        return ()

    def conditions(self) -> tuple[()]:
        return ()

    def kept_attempts(self, namespace: str) -> tuple[()]:
        return ()

    def running_pod(self, namespace: str, name: str) -> None:
        return None


def endpoint(name: str, process: Process, *, has_election: bool = True) -> HealthEndpoint:
    endpoints = health_endpoints(process, HealthSlis(), has_election=has_election)
    return next(endpoint for endpoint in endpoints if endpoint.name == name)


SYNCED = Process()
UNSYNCED = Process(has_synced=False)
STOPPING = Process(is_stopping=True)
STALLED = Process(stall="the scheduling loop has not moved for 21s")


@pytest.mark.parametrize(
    ("name", "process", "has_election", "excluded", "status", "text"),
    [
        pytest.param(
            "readyz",
            SYNCED,
            True,
            [],
            200,
            "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
            id="1-synced",
        ),
        pytest.param(
            "readyz",
            UNSYNCED,
            True,
            [],
            500,
            "[+]leaderElection ok\n[+]shutdown ok\n"
            "[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
            id="2-not-synced",
        ),
        pytest.param(
            "readyz",
            UNSYNCED,
            True,
            ["sched-handler-sync"],
            200,
            "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync excluded: ok\n"
            "readyz check passed\n",
            id="3-excluded",
        ),
        pytest.param(
            "healthz", SYNCED, False, [], 200, "[+]ping ok\nhealthz check passed\n", id="4-ping"
        ),
        pytest.param(
            "healthz",
            SYNCED,
            True,
            ["x"],
            200,
            "[+]leaderElection ok\n"
            'warn: some health checks cannot be excluded: no matches for "x"\n'
            "healthz check passed\n",
            id="unknown-exclusion",
        ),
        pytest.param(
            "readyz",
            STOPPING,
            False,
            [],
            500,
            "[-]shutdown failed: reason withheld\n[+]sched-handler-sync ok\nreadyz check failed\n",
            id="stopping",
        ),
        pytest.param(
            "livez",
            STOPPING,
            True,
            [],
            200,
            "[+]ping ok\n[+]scheduling-loop ok\nlivez check passed\n",
            id="still-alive",
        ),
        pytest.param(
            "livez",
            STALLED,
            True,
            [],
            500,
            "[+]ping ok\n[-]scheduling-loop failed: reason withheld\nlivez check failed\n",
            id="stalled",
        ),
        pytest.param(
            "healthz",
            STALLED,
            False,
            [],
            200,
            "[+]ping ok\nhealthz check passed\n",
            id="as-upstream",
        ),
    ],
)
def test_verbose_answers(
    name: str, process: Process, has_election: bool, excluded: list[str], status: int, text: str
) -> None:
    found = endpoint(name, process, has_election=has_election)
    assert found.answer_all(is_verbose=True, excluded=excluded) == (status, text)


def test_the_log_has_why_a_check_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level_of(2))
    endpoint("readyz", SYNCED).answer_all(is_verbose=False)
    endpoint("readyz", UNSYNCED).answer_all(is_verbose=False)
    assert caplog.messages == [
        "sched-handler-sync check failed: readyz\n"
        "[-]sched-handler-sync failed: handlers are not fully synchronized"
    ]


def test_a_plain_answer_is_ok_or_all_of_it() -> None:
    assert endpoint("readyz", SYNCED).answer_all(is_verbose=False) == (200, "ok")
    assert endpoint("readyz", UNSYNCED).answer_all(is_verbose=False).status == 500
    assert "check failed" in endpoint("readyz", UNSYNCED).answer_all(is_verbose=False).text


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("shutdown", (200, "ok")),
        (
            "sched-handler-sync",
            (500, "internal server error: handlers are not fully synchronized\n"),
        ),
        ("nonsense", None),
    ],
)
def test_single_checks_have_the_reason(name: str, answer: object) -> None:
    assert endpoint("readyz", UNSYNCED).answer_one(name) == answer


def test_checks_are_counted() -> None:
    slis = HealthSlis()
    found = HealthEndpoint(
        "readyz", [NamedCheck("good", always_ok), NamedCheck("bad", lambda: "no")], slis
    )
    for _ in range(3):
        found.answer_all(is_verbose=False)
    text = "".join(slis.registry.texts())
    assert 'kubernetes_healthcheck{name="good",type="readyz"} 1\n' in text
    assert 'kubernetes_healthcheck{name="bad",type="readyz"} 0\n' in text
    assert 'kubernetes_healthchecks_total{name="bad",status="error",type="readyz"} 3\n' in text
