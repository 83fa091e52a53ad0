"""Prints how far another scheduler agrees."""

from kubestow.service.formats import DataFormat
from kubestow.service.output import print_data, stdout
from kubestow.simulator.replay.agreement_report import AgreementCase, AgreementReport, RulesVerdict
from kubestow.simulator.replay.plugin_parts import PluginPart
from kubestow.table import Table


def print_agreement(report: AgreementReport, show: int, output: DataFormat) -> None:
    """`show`: how many cases, those by other rules first."""
    if output is not DataFormat.TABLE:
        report.cases = report.cases[:show]
        print_data(report, output)
        return
    disputed = [
        each
        for each in report.cases
        if each.verdict in (RulesVerdict.OTHER, RulesVerdict.UNDECIDED)
    ]
    _print_cases(disputed[:show])
    count = report.other_rules + report.verdicts.get(RulesVerdict.UNDECIDED, 0)
    if count > show:
        stdout().print(f"{count - show:,} more are not explained; --show N shows the first N.\n")
    if report.plugins:
        _print_plugins(report.plugins)
    if report.decisions:
        _print_verdicts(report)
    stdout().print(_sentence(report))
    if report.unseen:
        had = "pod had" if report.unseen == 1 else "pods had"
        stdout().print(f"{report.unseen:,} {had} a node when first seen, which is not compared.")


def _print_cases(cases: list[AgreementCase]) -> None:
    if not cases:
        return
    table = Table("AT", "POD", "VERDICT", "COMPARED", "RECORDED", "HERE")
    for each in cases:
        compared = f"{each.agreement} by {each.behind}" if each.behind else str(each.agreement)
        table.add(f"{each.at_s:.3f}s", each.pod, each.verdict, compared, each.recorded, each.here)
    table.print()
    stdout().print()
    for each in cases:
        if each.why is not None:
            line = f"{each.pod} at {each.at_s:.3f}s: {each.why.summary}"
            stdout().print(line, markup=False, highlight=False)
    stdout().print()


def _print_plugins(plugins: list[PluginPart]) -> None:
    """What the plugins have to do with decisions by other rules."""
    table = Table("PLUGIN", "AGAINST", "REJECTS", "POINTS", "AT MOST", "BEST WITHOUT IT")
    for each in plugins:
        table.add(
            each.plugin,
            f"{each.decisions:,}",
            f"{each.rejected:,}",
            f"{each.points:,}",
            f"{each.points_max:,}",
            f"{each.without_it:,}",
        )
    table.print()
    stdout().print()


def _print_verdicts(report: AgreementReport) -> None:
    table = Table("VERDICT", "DECISIONS", "SHARE")
    for verdict in reversed(RulesVerdict):
        count = report.verdicts.get(verdict, 0)
        if count:
            table.add(verdict, f"{count:,}", f"{count / report.decisions:.1%}")
    table.print()
    stdout().print()


def _sentence(report: AgreementReport) -> str:
    seen = f"{report.changes:,} changes in {report.duration_s:,.1f} s of recorded time"
    if not report.decisions:
        return f"{seen}: no decision to compare"
    if not report.other_rules:
        found = "none needs other rules"
    elif not report.plugins:
        found = f"{report.other_rules:,} by other rules"
    else:
        found = f"{report.other_rules:,} by other rules, most of all those of {_named(report)}"
    return f"{report.decisions:,} decisions, {seen}: {found}"


def _named(report: AgreementReport) -> str:
    first = report.plugins[0]
    if first.rejected > first.decisions / 2:
        return f"{first.plugin} (rejects the node in {first.rejected:,})"
    return f"{first.plugin} (up to {first.points_max:,} points)"
