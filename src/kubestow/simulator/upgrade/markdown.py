"""The result of a look at an upgrade as Markdown, for a ticket."""

from collections.abc import Iterator, Sequence

from kubestow.markdown import plain
from kubestow.plural import counted
from kubestow.simulator.upgrade.report import BROKEN, Effect, UpgradeFinding, UpgradeReport


def change_name(number: int | None) -> str:
    return "?" if number is None else f"#{number}"


def summary(report: UpgradeReport) -> str:
    """The answer in one or two sentences."""
    way = f"{report.before} to {report.after}"
    if report.is_back:
        way = f"{report.before} back to {report.after}, which undoes what is listed"
    decided = f"{counted(report.compared, 'waiting pod')} decided under both"
    if report.is_recording:
        decided = f"{counted(report.compared, 'decision')} made under both"
    if not report.is_changed:
        return f"{way}: nothing changes on this cluster; {decided}"
    parts = [f"{report.differing} of {decided} {'differs' if report.differing == 1 else 'differ'}"]
    for title, findings in (
        ("configuration", report.configuration),
        ("objects", report.objects),
        ("files", report.files),
    ):
        found = sum(each.effect != Effect.NOTE for each in findings)
        parts += [f"{counted(found, 'place')} in {title}"] if found else []
    broken = sum(each.effect in BROKEN for each in report.findings()) + sum(
        count
        for cause in report.causes
        for effect, count in cause.effects.items()
        if effect in BROKEN
    )
    parts += [f"{broken} broken"] if broken else []
    return f"{way}: {', '.join(parts)}"


def markdown(report: UpgradeReport) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: UpgradeReport) -> Iterator[str]:
    yield f"## Kubernetes {report.before} to {report.after}"
    yield ""
    yield f"{summary(report)}."
    if report.causes:
        yield from _table(
            "Decisions",
            ("change", "§", "pods", "effect", "what"),
            [
                (
                    change_name(each.change),
                    each.section or "-",
                    str(each.pods),
                    ", ".join(f"{count} {effect}" for effect, count in each.effects.items()),
                    each.text,
                )
                for each in report.causes
            ],
        )
        yield from _table(
            "Examples",
            ("change", "pod", "effect", "before", "after", "why"),
            [
                (
                    change_name(cause.change),
                    each.pod,
                    each.effect,
                    each.before,
                    each.after,
                    each.why,
                )
                for cause in report.causes
                for each in cause.examples
            ],
        )
    yield from _findings("Configuration", report.configuration)
    yield from _findings("Objects", report.objects)
    yield from _findings(f"Found in {counted(report.searched, 'file')}", report.files)
    if report.searched and not report.files:
        yield from ("", f"{nothing_found(report)}.")
    if report.left_out:
        yield from ("", f"Not compared: {'; '.join(report.left_out)}.")
    yield from _table(
        "Not shown by objects",
        ("change", "what", "why not"),
        [(change_name(each.change), each.text, each.why) for each in report.unseen],
    )


def nothing_found(report: UpgradeReport) -> str:
    return f"Searched {counted(report.searched, 'file')}: no name in them differs"


def _findings(title: str, findings: Sequence[UpgradeFinding]) -> Iterator[str]:
    if not findings:
        return
    rows = [
        (
            each.effect,
            "-" if each.change is None else change_name(each.change),
            each.where,
            each.text,
        )
        for each in findings
    ]
    yield from _table(title, ("effect", "change", "where", "what"), rows)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"### {title}", "")
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"
