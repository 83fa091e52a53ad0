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
