"""What `kubestow upgrade` prints: a sentence with the answer, then what differs, by its cause."""

import sys
from collections.abc import Sequence

from kubestow.plural import counted
from kubestow.service.formats import DataFormat, UpgradeFormat
from kubestow.service.output import print_data, say
from kubestow.simulator.upgrade.markdown import change_name, markdown, nothing_found, summary
from kubestow.simulator.upgrade.report import UpgradeCause, UpgradeFinding, UpgradeReport
from kubestow.table import Table


def print_upgrade(report: UpgradeReport, output: UpgradeFormat) -> None:
    match output:
        case UpgradeFormat.JSON:
            print_data(report, DataFormat.JSON)
        case UpgradeFormat.YAML:
            print_data(report, DataFormat.YAML)
        case UpgradeFormat.MARKDOWN:
            sys.stdout.write(markdown(report))
        case UpgradeFormat.TABLE:
            _print_table(report)


def _print_table(report: UpgradeReport) -> None:
    say(summary(report))
    if report.causes:
        say("\nDecisions:\n")
        _cause_table(report.causes).print()
        say("")
        _example_table(report.causes).print()
        _print_reasons(report.causes)
    for title, findings in (
        ("Configuration", report.configuration),
        ("Objects", report.objects),
        (f"Found in {counted(report.searched, 'file')}", report.files),
    ):
        if findings:
            say(f"\n{title}:\n")
            _finding_table(findings).print()
    if report.searched and not report.files:
        say(f"\n{nothing_found(report)}")
    if report.left_out:
        say(f"\nNot compared: {'; '.join(report.left_out)}")
    say("\nNot shown by objects:\n")
    table = Table("CHANGE", "WHAT", "WHY NOT", texts=("WHAT", "WHY NOT"))
    for each in report.unseen:
        table.add(change_name(each.change), each.text, each.why)
    table.print()


def _cause_table(causes: Sequence[UpgradeCause]) -> Table:
    table = Table("CHANGE", "§", "PODS", "EFFECT", "WHAT", right=("PODS",))
    for each in causes:
        effects = ", ".join(f"{count} {effect}" for effect, count in each.effects.items())
        section = each.section or "-"
        table.add(change_name(each.change), section, str(each.pods), effects, each.text)
    return table


def _example_table(causes: Sequence[UpgradeCause]) -> Table:
    table = Table(
        "CHANGE", "POD", "EFFECT", "PLUGINS", "BEFORE", "AFTER", texts=("BEFORE", "AFTER"), keys=2
    )
    for cause in causes:
        for each in cause.examples:
            plugins = ",".join(each.plugins) or "-"
            name = change_name(cause.change)
            table.add(name, each.pod, each.effect, plugins, each.before, each.after)
    return table


def _print_reasons(causes: Sequence[UpgradeCause]) -> None:
    examples = [(cause, each) for cause in causes for each in cause.examples if each.why]
    if examples:
        say("")
    for cause, each in examples:
        say(f"{change_name(cause.change)} {each.pod}: {each.why}")


def _finding_table(findings: Sequence[UpgradeFinding]) -> Table:
    table = Table("EFFECT", "CHANGE", "WHERE", "WHAT")
    for each in findings:
        change = "-" if each.change is None else change_name(each.change)
        table.add(each.effect, change, each.where, each.text)
    return table
