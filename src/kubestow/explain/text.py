"""An explanation for people: short sections, and tables that fit a terminal.

The lines are plain; what a terminal shows in bold or in a colour is named beside them.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from kubestow.explain.command_lines import command_lines
from kubestow.explain.evidence.facts import ReasonEvidence
from kubestow.explain.explanation import (
    Explanation,
    GroupExplanation,
    NodeExplanation,
    NodeFilterAnswer,
    NodeSearch,
    Preemption,
)
from kubestow.framework.events import Resource
from kubestow.plural import counted, some_of
from kubestow.redaction import printable
from kubestow.table import Table

_STYLES: Final = {
    "Scheduled": "green",
    "Bound": "green",
    "Unschedulable": "red",
    "Error": "red",
    "Gated": "yellow",
    "Excluded": "yellow",
}
_WIDTH: Final = 100  # without a terminal
_NODES_SHOWN: Final = 10
_NAMES_SHOWN: Final = 4
_NEAREST_SHOWN: Final = 3
_PODS: Final = (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD)
_INDENT: Final = "  "
# By the status of kube-scheduler's framework: whether evicting pods helps.
_EVICTING: Final = {"Unschedulable": "may help", "UnschedulableAndUnresolvable": "cannot"}


class Line(NamedTuple):
    """A line, and the part of it that has a style. All texts are printable."""

    text: str
    styled: str = ""
    style: str = ""


def explanation_lines(
    explanation: Explanation, *, node: str = "", is_wide: bool = False, width: int | None = None
) -> list[Line]:
    """All that is known; of one node only, if one is named. Without a width no row is wrapped."""
    text = _Text(width)
    _add_head(text, explanation)
    _add_mistakes(text, explanation)
    if node:
        for each in explanation.nodes:
            if each.name == node:
                _add_node(text, each)
        return text.printed()
    _add_ranking(text, explanation, is_wide=is_wide)
    _add_reasons(text, explanation, is_wide=is_wide)
    _add_evidence(text, explanation, is_wide=is_wide)
    if explanation.search is not UNSET:
        _add_search(text, explanation.search, explanation.nodes)
    if explanation.preemption is not UNSET:
        _add_preemption(text, explanation, explanation.preemption)
    if explanation.group is not UNSET:
        _add_group(text, explanation.group)
    _add_waiting(text, explanation, is_wide=is_wide)
    _add_suggestions(text, explanation, is_wide=is_wide)
    return text.printed()


class _Text:
    def __init__(self, width: int | None) -> None:
        self.lines: list[Line] = []
        self.width = width

    def title(self, title: str) -> None:
        self.lines += [Line(""), Line(title, title, "bold")]

    def paragraph(self, text: str, *, hanging: str = "") -> None:
        wrapped = textwrap.wrap(
            text,
            self.width or _WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT + hanging,
            break_on_hyphens=False,
            break_long_words=False,
        )
        self.lines += map(Line, wrapped)

    def table(self, table: Table) -> None:
        width = None if self.width is None else self.width - len(_INDENT)
        for text, is_header in table.marked_lines(width=width):
            line = f"{_INDENT}{text}".rstrip()
            self.lines.append(Line(line, line, "bold") if is_header else Line(line))

    def printed(self) -> list[Line]:
        """The lines, with what a cluster put into them and a terminal would obey made visible."""
        return [Line(*map(printable, line)) for line in self.lines]


# --- sections ---


def _add_head(text: _Text, explanation: Explanation) -> None:
    pod, outcome = explanation.pod, explanation.outcome
    where = f" on {explanation.node}" if explanation.node else ""
    style = f"bold {_STYLES[outcome]}"
    text.lines.append(Line(f"Pod {pod.namespace}/{pod.name}: {outcome}{where}", outcome, style))
    text.paragraph(explanation.summary)
    if explanation.message:
        text.paragraph(explanation.message)


def _add_ranking(text: _Text, explanation: Explanation, *, is_wide: bool) -> None:
    feasible = [node for node in explanation.nodes if node.verdict == "Feasible"]
    scored = [node for node in feasible if node.total is not None]
    if not scored:
        return
    shown = scored if is_wide else scored[:_NODES_SHOWN]
    plugins = list(shown[0].scores)
    same = [] if is_wide else [plugin for plugin in plugins if _is_same(plugin, scored)]
    text.title(f"Ranking of {counted(len(scored), 'node')} that fit")
    differing = [plugin for plugin in plugins if plugin not in same]
    table = Table("NODE", "TOTAL", *differing, right=("TOTAL", *differing))
    for node in shown:
        cells = [_score_text(node, plugin, is_wide=is_wide) for plugin in differing]
        table.add(node.name, str(node.total), *cells)
    text.table(table)
    if len(scored) > len(shown):
        text.paragraph(f"and {counted(len(scored) - len(shown), 'more node')}, with -o wide")
    if same and len(scored) > 1:
        equal = ", ".join(f"{name} {scored[0].scores[name].weighted}" for name in same)
        text.paragraph(f"the same on all of them: {equal}")
    _add_choice(text, explanation)


def _add_choice(text: _Text, explanation: Explanation) -> None:
    choice = explanation.choice
    if choice is UNSET or not choice.next_node:
        return
    differences = ", ".join(f"{each.plugin} {each.difference:+}" for each in choice.differences)
    if differences:
        text.paragraph(f"compared with {choice.next_node}: {differences}")
    match choice.tie_break:
        case "SearchOrder":
            text.paragraph(
                f"{choice.tied_count} nodes have the best total; the first of them in the order "
                "of kube-scheduler's heap is taken"
            )
        case "Random":
            text.paragraph(f"{choice.tied_count} nodes have the best total; one is taken at random")
        case "None":
            pass


def _add_reasons(text: _Text, explanation: Explanation, *, is_wide: bool) -> None:
    if not explanation.reasons:
        return
    text.title("Nodes that do not fit")
    table = Table(
        "NODES",
        "PLUGIN",
        "REASON",
        "EVICTING",
        "WHICH",
        right=("NODES",),
        texts=("REASON", "WHICH"),
    )
    for group in explanation.reasons:
        which = ", ".join(group.nodes) if is_wide else some_of(group.nodes, _NAMES_SHOWN)
        evicting = _EVICTING.get(group.code, "cannot")
        table.add(str(group.count), group.plugin, group.reason, evicting, which)
    text.table(table)


def _add_mistakes(text: _Text, explanation: Explanation) -> None:
    if explanation.mistakes:
        text.title("A typing mistake?")
        # One name may be wrong in two places.
        for mistake in dict.fromkeys(each.text for each in explanation.mistakes):
            text.paragraph(mistake, hanging=_INDENT)


def _add_evidence(text: _Text, explanation: Explanation, *, is_wide: bool) -> None:
    """What is behind each reason; with `is_wide` of each group of nodes, and all near ones."""
    found = [group for group in explanation.reasons if isinstance(group.evidence, ReasonEvidence)]
    if found or explanation.facts:
        text.title("How much, and which")
    for fact in explanation.facts:
        text.paragraph(fact.text, hanging=_INDENT)
    for group in found:
        assert isinstance(group.evidence, ReasonEvidence)
        text.paragraph(f"{counted(group.count, 'node')}: {group.evidence.text}", hanging=_INDENT)
        for each in group.evidence.groups if is_wide else ():
            facts = "; ".join(fact.text for fact in each.facts)
            rest = each.count - len(each.nodes)
            more = f" and {rest} more" if rest else ""
            text.paragraph(f"  {', '.join(each.nodes)}{more}: {facts}", hanging=_INDENT * 2)
    if explanation.nearest:
        text.title("Nearest nodes")
        for miss in explanation.nearest if is_wide else explanation.nearest[:_NEAREST_SHOWN]:
            text.paragraph(f"{miss.node}: {miss.text}", hanging=_INDENT)


def _add_search(text: _Text, search: NodeSearch, nodes: Iterable[NodeExplanation]) -> None:
    unseen = sum(node.verdict == "NotLookedAt" for node in nodes)
    if not unseen:
        return
    match search.end:
        case "EnoughFound":
            why = (
                f"{counted(search.wanted, 'node')} that fit are enough to choose from "
                "(percentageOfNodesToScore)"
            )
        case "NominatedNode":
            why = "the pod fits the node that it is nominated to"
        case "Hint":
            why = "the pod fits the best node that an equal pod just before left over"
        case "PreFilterRestricted":
            why = "PreFilter plugins leave only some nodes"
        case _:
            why = "the attempt ended before"
    text.title("Nodes not looked at")
    text.paragraph(f"{unseen} of {search.nodes}: {why}")


def _add_preemption(text: _Text, explanation: Explanation, preemption: Preemption) -> None:
    text.title("Preemption")
    match preemption.result:
        case "Nominated":
            victims = [
                f"{victim.namespace}/{victim.name} (priority {victim.priority})"
                for victim in explanation.victims
            ]
            text.paragraph(f"on {explanation.nominated_node}, evicting {', '.join(victims)}")
        case "Disabled":
            text.paragraph("no PostFilter plugin is enabled")
        case "Error" if _is_rejected_early(explanation):
            text.paragraph(
                "evicting pods cannot help: the pod is rejected before any node is asked"
            )
        case "NotEligible" | "Error":
            text.paragraph(preemption.message)
        case "NoCandidates":
            hopeless, possible = preemption.hopeless_nodes, preemption.possible_nodes
            if hopeless:
                text.paragraph(f"evicting pods cannot help on {counted(hopeless, 'node')}")
            if possible:
                text.paragraph(
                    f"no pods that could be evicted are enough on {counted(possible, 'node')}"
                )


def _is_rejected_early(explanation: Explanation) -> bool:
    search = explanation.search
    return search is not UNSET and search.end == "PreFilterRejected"


def _add_group(text: _Text, group: GroupExplanation) -> None:
    needed = "" if group.min_count is None else f", {group.min_count} are needed"
    fitting = f"{group.fitting} of {counted(len(group.members), 'member')}"
    text.title(f"Group {group.namespace}/{group.name}: {fitting} fit{needed}")
    table = Table("MEMBER", "OUTCOME", "NODE", "MESSAGE")
    for member in group.members:
        table.add(member.name, member.outcome, member.node, member.message)
    text.table(table)


def _add_waiting(text: _Text, explanation: Explanation, *, is_wide: bool) -> None:
    if explanation.waiting_for:
        text.title("Tried again after a change of")
        # Dictionaries without values are sets that keep the order.
        events: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for awaited in explanation.waiting_for:
            resource = awaited.resource.rpartition("/")[2]
            # v1.37 has three kinds of pods here; which one matters to few readers.
            kind = "Pod" if resource in _PODS else resource
            for plugin in awaited.plugins:
                events[plugin][f"{resource} ({awaited.action})" if is_wide else kind] = None
        for plugin, names in events.items():
            text.paragraph(f"{', '.join(names)} ({plugin})", hanging=_INDENT)
    attempt = explanation.attempt
    if attempt is not UNSET:
        text.title(f"Attempt {attempt.attempts}")
        text.paragraph(f"made at {attempt.at}")
        if attempt.next_try:
            text.paragraph(f"tried again at {attempt.next_try} at the latest ({attempt.place})")


def _add_suggestions(text: _Text, explanation: Explanation, *, is_wide: bool) -> None:
    if explanation.tried:
        text.title("What would make it fit")
        found = "this does not help" if explanation.suggestions else "nothing was found. Tried"
        text.paragraph(f"{found}: {'; '.join(explanation.tried)}")
    if not explanation.suggestions:
        return
    if not explanation.tried:
        text.title("What would make it fit")
    for number, suggestion in enumerate(explanation.suggestions, start=1):
        text.paragraph(f"{number}. {suggestion.text}", hanging="   ")
        if suggestion.effect:
            text.paragraph(f"   {suggestion.effect}", hanging="   ")
        for command in suggestion.commands:
            lines = command_lines(command, f"{_INDENT}   ", text.width, is_wide=is_wide)
            text.lines += map(Line, lines)


def _add_node(text: _Text, node: NodeExplanation) -> None:
    text.title(f"Node {node.name}: {node.verdict}")
    if isinstance(node.filters, tuple):
        table = Table("FILTER", "VERDICT", "EVICTING", "REASON")
        for answer in node.filters:
            evicting = _EVICTING.get(answer.code, "")
            table.add(answer.plugin, answer.verdict, evicting, ", ".join(answer.reasons))
        text.table(table)
        _add_facts(text, node.filters)
    if node.scores:
        text.lines.append(Line(""))
        numbers = ("RAW", "NORMALIZED", "WEIGHT", "WEIGHTED")
        table = Table("SCORE", *numbers, right=numbers)
        for plugin, score in node.scores.items():
            parts = (score.raw, score.normalized, score.weight, score.weighted)
            table.add(plugin, *map(str, parts))
        table.add("total", "", "", "", str(node.total))
        text.table(table)
    if isinstance(node.score_parts, dict) and any(node.score_parts.values()):
        text.title("What made the scores")
        for plugin, parts in node.score_parts.items():
            if parts:
                score = node.scores[plugin].normalized
                made_of = ", ".join(part.text for part in parts)
                text.paragraph(f"{plugin} {score}: {made_of}", hanging=_INDENT)


def _add_facts(text: _Text, filters: Iterable[NodeFilterAnswer]) -> None:
    found = [answer for answer in filters if answer.facts]
    if found:
        text.title("How much, and which")
    for answer in found:
        for fact in answer.facts:
            text.paragraph(f"{answer.plugin}: {fact.text}", hanging=_INDENT)


# --- parts ---


def _is_same(plugin: str, nodes: Sequence[NodeExplanation]) -> bool:
    return len({node.scores[plugin].weighted for node in nodes}) == 1


def _score_text(node: NodeExplanation, plugin: str, *, is_wide: bool) -> str:
    score = node.scores[plugin]
    if not is_wide:
        return str(score.weighted)
    return f"{score.raw} → {score.normalized} x {score.weight} = {score.weighted}"
