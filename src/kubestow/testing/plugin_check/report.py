"""What a check of a plugin found."""

import msgspec

OK = "ok"
FAILED = "failed"
SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one check: ok, failed or skipped; `detail` says what, with which pod."""

    check: str
    result: str
    detail: str = ""


class Duration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    method: str
    node_count: int
    microseconds_per_node: float


class PluginReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    plugin: str
    methods: tuple[str, ...]
    findings: tuple[Finding, ...]
    durations: tuple[Duration, ...]

    @property
    def has_failed(self) -> bool:
        return any(finding.result == FAILED for finding in self.findings)
