"""What `kubestow explain` prints for people: short sections, and tables that fit a terminal."""

import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import UNSET

from kubestow.explain.explanation import (
    Explanation,
    GroupExplanation,
    NodeExplanation,
    NodeSearch,
    Preemption,
)
from kubestow.plural import counted
from kubestow.service.output import stdout
from kubestow.service.table import Table

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
_INDENT: Final = "  "
# By the status of kube-scheduler's framework: whether evicting pods helps.
_EVICTING: Final = {"Unschedulable": "may help", "UnschedulableAndUnresolvable": "cannot"}


def print_explanation(explanation: Explanation, *, node: str = "", is_wide: bool = False) -> None:
    """Print all that is known; of one node only, if one is named."""
    _print_head(explanation)
    if node:
        for each in explanation.nodes:
            if each.name == node:
                _print_node(each)
        return
    _print_ranking(explanation, is_wide=is_wide)
    _print_reasons(explanation, is_wide=is_wide)
    if explanation.search is not UNSET:
        _print_search(explanation.search, explanation.nodes)
    if explanation.preemption is not UNSET:
        _print_preemption(explanation, explanation.preemption)
    if explanation.group is not UNSET:
        _print_group(explanation.group)
    _print_waiting(explanation, is_wide=is_wide)
    _print_suggestions(explanation)


# --- sections ---


def _print_head(explanation: Explanation) -> None:
    pod, outcome = explanation.pod, explanation.outcome
    where = f" on {explanation.node}" if explanation.node else ""
    style = _STYLES[outcome]
    stdout().print(f"Pod {pod.namespace}/{pod.name}: [bold {style}]{outcome}[/]{where}")
    _print_text(explanation.summary)
    if explanation.message:
        _print_text(explanation.message)


def _print_ranking(explanation: Explanation, *, is_wide: bool) -> None:
    feasible = [node for node in explanation.nodes if node.verdict == "Feasible"]
    scored = [node for node in feasible if node.total is not None]
    if not scored:
        return
    shown = scored if is_wide else scored[:_NODES_SHOWN]
    plugins = list(shown[0].scores)
    same = [] if is_wide else [plugin for plugin in plugins if _is_same(plugin, scored)]
    _print_title(f"Ranking of {counted(len(scored), 'node')} that fit")
    differing = [plugin for plugin in plugins if plugin not in same]
    table = Table("NODE", "TOTAL", *differing, right=("TOTAL", *differing))
    for node in shown:
        cells = [_score_text(node, plugin, is_wide=is_wide) for plugin in differing]
        table.add(node.name, str(node.total), *cells)
    table.print(indent=_INDENT)
    if len(scored) > len(shown):
        _print_text(f"and {counted(len(scored) - len(shown), 'more node')}, with -o wide")
    if same and len(scored) > 1:
        equal = ", ".join(f"{name} {scored[0].scores[name].weighted}" for name in same)
        _print_text(f"the same on all of them: {equal}")
    _print_choice(explanation)


def _print_choice(explanation: Explanation) -> None:
    choice = explanation.choice
    if choice is UNSET or not choice.next_node:
        return
    differences = ", ".join(f"{each.plugin} {each.difference:+}" for each in choice.differences)
    if differences:
        _print_text(f"compared with {choice.next_node}: {differences}")
    match choice.tie_break:
        case "SearchOrder":
            _print_text(
                f"{choice.tied_count} nodes have the best total; the first of them in the order "
                "of kube-scheduler's heap is taken"
            )
        case "Random":
            _print_text(f"{choice.tied_count} nodes have the best total; one is taken at random")
        case "None":
            pass


def _print_reasons(explanation: Explanation, *, is_wide: bool) -> None:
    if not explanation.reasons:
        return
    _print_title("Nodes that do not fit")
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
        which = ", ".join(group.nodes) if is_wide else _some(group.nodes)
        evicting = _EVICTING.get(group.code, "cannot")
        table.add(str(group.count), group.plugin, group.reason, evicting, which)
    table.print(indent=_INDENT)


def _print_search(search: NodeSearch, nodes: Iterable[NodeExplanation]) -> None:
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
        case "PreFilterRestricted":
            why = "PreFilter plugins leave only some nodes"
        case _:
            why = "the attempt ended before"
    _print_title("Nodes not looked at")
    _print_text(f"{unseen} of {search.nodes}: {why}")


def _print_preemption(explanation: Explanation, preemption: Preemption) -> None:
    _print_title("Preemption")
    match preemption.result:
        case "Nominated":
            victims = [
                f"{victim.namespace}/{victim.name} (priority {victim.priority})"
                for victim in explanation.victims
            ]
            _print_text(f"on {explanation.nominated_node}, evicting {', '.join(victims)}")
        case "Disabled":
            _print_text("no PostFilter plugin is enabled")
        case "NotEligible" | "Error":
            _print_text(preemption.message)
        case "NoCandidates":
            hopeless, possible = preemption.hopeless_nodes, preemption.possible_nodes
            if hopeless:
                _print_text(f"evicting pods cannot help on {counted(hopeless, 'node')}")
            if possible:
                _print_text(
                    f"no pods that could be evicted are enough on {counted(possible, 'node')}"
                )


def _print_group(group: GroupExplanation) -> None:
    needed = "" if group.min_count is None else f", {group.min_count} are needed"
    fitting = f"{group.fitting} of {counted(len(group.members), 'member')}"
    _print_title(f"Group {group.namespace}/{group.name}: {fitting} fit{needed}")
    table = Table("MEMBER", "OUTCOME", "NODE", "MESSAGE")
    for member in group.members:
        table.add(member.name, member.outcome, member.node, member.message)
    table.print(indent=_INDENT)


def _print_waiting(explanation: Explanation, *, is_wide: bool) -> None:
    if explanation.waiting_for:
        _print_title("Tried again after a change of")
        # Dictionaries without values are sets that keep the order.
        events: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for awaited in explanation.waiting_for:
            resource = awaited.resource.rpartition("/")[2]
            for plugin in awaited.plugins:
                events[plugin][f"{resource} ({awaited.action})" if is_wide else resource] = None
        for plugin, names in events.items():
            _print_text(f"{', '.join(names)} ({plugin})", hanging=_INDENT)
    attempt = explanation.attempt
    if attempt is not UNSET:
        _print_title(f"Attempt {attempt.attempts}")
        _print_text(f"made at {attempt.at}")
        if attempt.next_try:
            _print_text(f"tried again at {attempt.next_try} at the latest ({attempt.place})")


def _print_suggestions(explanation: Explanation) -> None:
    if not explanation.suggestions:
        return
    _print_title("What would make it fit")
    for number, suggestion in enumerate(explanation.suggestions, start=1):
        _print_text(f"{number}. {suggestion.text}", hanging="   ")


def _print_node(node: NodeExplanation) -> None:
    _print_title(f"Node {node.name}: {node.verdict}")
    if isinstance(node.filters, tuple):
        table = Table("FILTER", "VERDICT", "EVICTING", "REASON")
        for answer in node.filters:
            evicting = _EVICTING.get(answer.code, "")
            table.add(answer.plugin, answer.verdict, evicting, ", ".join(answer.reasons))
        table.print(indent=_INDENT)
    if node.scores:
        sys.stdout.write("\n")
        numbers = ("RAW", "NORMALIZED", "WEIGHT", "WEIGHTED")
        table = Table("SCORE", *numbers, right=numbers)
        for plugin, score in node.scores.items():
            parts = (score.raw, score.normalized, score.weight, score.weighted)
            table.add(plugin, *map(str, parts))
        table.add("total", "", "", "", str(node.total))
        table.print(indent=_INDENT)


# --- parts ---


def _is_same(plugin: str, nodes: Sequence[NodeExplanation]) -> bool:
    return len({node.scores[plugin].weighted for node in nodes}) == 1


def _score_text(node: NodeExplanation, plugin: str, *, is_wide: bool) -> str:
    score = node.scores[plugin]
    if not is_wide:
        return str(score.weighted)
    return f"{score.raw} → {score.normalized} x {score.weight} = {score.weighted}"


def _print_title(text: str) -> None:
    sys.stdout.write("\n")
    stdout().print(text, style="bold", markup=False)


def _print_text(text: str, *, hanging: str = "") -> None:
    lines = textwrap.wrap(
        text,
        _width(),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT + hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    rest = len(names) - _NAMES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
