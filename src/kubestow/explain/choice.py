"""Why the chosen node won, and how far the search went."""

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.explanation import NodeChoice, NodeSearch, ScoreDifference
from kubestow.explain.verdicts import ranking, search_end


def choice_of(attempt: FrozenDecision, *, has_extenders: bool = False) -> NodeChoice:
    """What made the difference to the next node; for a pod that was placed.

    Extenders break ties at random, plugins by the order of the search.
    """
    names = list(attempt.feasible)
    if attempt.total is None or len(names) < 2:
        return NodeChoice()
    first, second, *_ = ranking(attempt)
    differences = [
        ScoreDifference(
            plugin=part.plugin, difference=int(part.weighted[first]) - int(part.weighted[second])
        )
        for part in attempt.scores
    ]
    tied_count = int((attempt.total == attempt.total[first]).sum())
    tie_break = "Random" if has_extenders else "SearchOrder"
    return NodeChoice(
        next_node=names[second],
        margin=int(attempt.total[first]) - int(attempt.total[second]),
        differences=tuple(
            sorted(
                (each for each in differences if each.difference),
                key=lambda each: (-abs(each.difference), each.plugin),
            )
        ),
        tied_count=tied_count,
        tie_break=tie_break if tied_count > 1 else "None",
    )


def search_of(attempt: FrozenDecision) -> NodeSearch:
    node_count = len(attempt.feasible) + len(attempt.absent.nodes)
    node_count += sum(len(group.nodes) for group in attempt.rejected)
    return NodeSearch(
        nodes=node_count,
        evaluated=attempt.evaluated_count,
        feasible=len(attempt.feasible),
        wanted=attempt.nodes_to_find,
        end=search_end(attempt),
    )
