"""Values that options take: the formats of `-o`, the variants of `bench --variant`.

Apart from `output`, whose libraries the help of commands does not need.
"""

from enum import StrEnum


class OutputFormat(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


class DataFormat(StrEnum):
    """The output formats of commands whose table has one width."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class CompareFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    # A row for each variant, seed and figure.
    CSV = "csv"


class UpgradeFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    # For a ticket.
    MARKDOWN = "markdown"


class RebalanceFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    # For kubectl.
    SCRIPT = "script"


class AlsoMoved(StrEnum):
    """Pods that `rebalance --also` evicts as well."""

    LOCAL_VOLUMES = "local-volumes"
    JOBS = "jobs"


class FailOn(StrEnum):
    """What `upgrade --fail-on` exits with code 1 for."""

    CHANGED = "changed"
    BROKEN = "broken"


class ExplainFormat(StrEnum):
    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    # Of kube-scheduler-simulator, as the JSON object that a pod's annotations are.
    ANNOTATIONS = "annotations"


class BenchFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    # The format of upstream's own suite.
    PERF_JSON = "perf-json"


class TimesFormat(StrEnum):
    """The output formats of the subcommands of `bench`."""

    TABLE = "table"
    JSON = "json"


class VariantChoice(StrEnum):
    """The variants of `--variant`."""

    PLAIN = "plain"
    UNLIKE = "unlike"
    ALL_UNLIKE = "all-unlike"
    ALL = "all"


class TraceFormat(StrEnum):
    """The formats of `simulate --trace`."""

    OPENB = "openb"
    CSV = "csv"
    ALIBABA_2018 = "alibaba2018"
    AZURE_2019 = "azure2019"


class TestFormat(StrEnum):
    """The output formats of `test`."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    # Annotations at the lines of manifests.
    GITHUB = "github"
    # One comment of a pull request.
    MARKDOWN = "markdown"
