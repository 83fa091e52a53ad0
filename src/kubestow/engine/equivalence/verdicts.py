"""Operations on arrays of verdicts and scores that frames, records and attempts share."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, IntpArray, NarrowArray, largest, narrow_type
from kubestow.cache.numbering import numbered_max
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED, UNKNOWN
from kubestow.framework.plugin import MAX_NODE_SCORE, StatusCodes
from kubestow.framework.profile import FilterStep, Profile, ScoreStep
from kubestow.framework.runner import Verdicts, filter_of, score_of
from kubestow.index.nodes import Nodes


class FallBackToPlain(Exception):
    """A plugin failed. The attempt is made again by asking every plugin, because which failure
    counts depends on the order of all plugins."""


def find_verdicts(
    steps: Iterable[FilterStep], nodes: Nodes, state: CycleState, pod: PodInfo
) -> Verdicts | None:
    """The verdicts of these filters alone; None if every node passes."""
    verdicts: Verdicts | None = None
    for step in steps:
        found = filter_of(step.plugin, step.name, state, pod, nodes)
        if found is None:
            continue
        if verdicts is None:
            # A copy: what plugins return may be kept by them.
            verdicts = Verdicts(np.where(found, step.filter_index, PASSED), found.copy())
        else:
            override(*verdicts, found, step.filter_index)
    return verdicts


def all_passing(count: int) -> Verdicts:
    return Verdicts(np.full(count, PASSED, np.int64), np.zeros(count, np.int64))


def verdicts_of(
    codes: NarrowArray, index: int, index_dtype: np.dtype[np.signedinteger[Any]]
) -> Verdicts:
    """The verdicts of one filter alone; `index_dtype` is of `index_type`."""
    failed_by = (codes != 0).astype(index_dtype)
    failed_by *= index - PASSED
    failed_by += PASSED
    return Verdicts(failed_by, codes)


def override(
    failed_by: NarrowArray,
    codes: NarrowArray,
    found: NarrowArray,
    index: int,
    positions: IntpArray | None = None,
) -> None:
    """Enter a filter's codes where it is the first to reject the node.

    With `positions` the codes are those of these nodes only.
    """
    rejected = found.nonzero()[0]
    if len(rejected) == 0:
        return
    where = rejected if positions is None else positions[rejected]
    before = failed_by[where]
    is_first = (before == PASSED) | (before > index)
    failed_by[where[is_first]] = index
    codes[where[is_first]] = found[rejected[is_first]]


def merged(one: Verdicts, other: Verdicts) -> Verdicts:
    """The verdicts of two sets of filters together, both of `index_type`."""
    # As unsigned, PASSED is larger than any index.
    unsigned = np.dtype(f"u{one.failed_by.dtype.itemsize}")
    first, second = one.failed_by.view(unsigned), other.failed_by.view(unsigned)
    return Verdicts(
        np.minimum(first, second).view(one.failed_by.dtype),
        np.where(second < first, other.codes, one.codes),
    )


def add_scores(
    total: IntArray, steps: Sequence[ScoreStep], nodes: Nodes, state: CycleState, pod: PodInfo
) -> None:
    for step in steps:
        score = checked(score_of(step, state, pod, nodes))
        total += score if step.weight == 1 else score * step.weight


def checked(scores: IntArray) -> IntArray:
    # As unsigned, negative numbers are huge: one comparison finds both kinds.
    if largest(scores.view(np.uint64)) > MAX_NODE_SCORE:
        raise FallBackToPlain
    return scores


def index_type(profile: Profile) -> type[np.signedinteger[Any]]:
    """The smallest type for the index of any filter, and for its distance from UNKNOWN."""
    return narrow_type(len(profile.filter_steps) - UNKNOWN)


def score_type(steps: Iterable[ScoreStep], more: int = 0) -> type[np.signedinteger[Any]]:
    """The smallest type for the sum of these weighted scores, and of more with this weight."""
    return narrow_type((sum(step.weight for step in steps) + more) * MAX_NODE_SCORE)


def has_many_statuses(state: CycleState, node_count: int) -> bool:
    """Whether plugins have numbered more distinct reasons than nodes can have: each gets a number
    in the state, and reasons may hold a load or a date."""
    statuses_max = numbered_max(node_count)
    return any(
        [isinstance(value, StatusCodes) and len(value) > statuses_max for value in state.values()]
    )
