"""What `kubestow plugin check` does: try a plugin by itself, before it gets near a cluster.

Not here: the checks (`kubestow.testing.plugin_check`).
"""

from pathlib import Path

from kubestow.clock import SystemClock
from kubestow.config.documents import read_document
from kubestow.errors import InputError
from kubestow.files.reading import read_file
from kubestow.service.formats import DataFormat
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import print_data, stdout
from kubestow.table import Table
from kubestow.testing.plugin_check import PluginReport, check_plugin


def report_plugin(reference: str, args_file: Path | None, output: DataFormat) -> int:
    """Check a plugin and print what was found; the exit code."""
    with warnings_on_stderr():
        report = check_plugin(reference, _read_args(args_file), SystemClock())
    if output is DataFormat.TABLE:
        _print_table(report)
    else:
        print_data(report, output)
    return 1 if report.has_failed else 0


def _read_args(path: Path | None) -> object:
    if path is None:
        return None
    try:
        raw = read_file(path)
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error
    return read_document(raw).value


def _print_table(report: PluginReport) -> None:
    stdout().print(f"{report.plugin}: {', '.join(report.methods)}\n", markup=False)
    table = Table("CHECK", "RESULT", "DETAIL")
    for finding in report.findings:
        table.add(finding.check, finding.result, finding.detail)
    table.print()
    for duration in report.durations:
        stdout().print(
            f"{duration.method}: {duration.microseconds_per_node:g} µs per node "
            f"with {duration.node_count} nodes"
        )
