"""Measurements, estimates and verdicts as arrays over the rows of the snapshot.

    usage (by slot) ──┐
    snapshot (rows) ──┼──► refresh: at most once per change of either ──► arrays
    placed pods ──────┘                   one row at a time: place, remove

A cycle only compares versions and the time. A node is usable if it has a measurement that is new
enough and can be true; all others are left alone.
"""

from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.columns import ALLOCATABLE
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.load_aware_args import RESOURCES, LoadAwareArgs, LoadThresholds
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.reuse import RowAnswers
from kubestow.plugins.load_aware.placed import PLACED_HALF, PlacedPods
from kubestow.usage.measurement import Amounts
from kubestow.usage.view import NodeUsage, UsageView

# Clocks of nodes may be ahead by this much.
AHEAD_NS: Final = 60 * NANOSECONDS
# A node cannot use many times what it offers: such a measurement is of something else.
PLAUSIBLE_TIMES: Final = 8
_NEVER_NS: Final = np.iinfo(np.int64).max
_NO_FLOOR: Final = np.iinfo(np.int64).min
# The cells of a row, which fill one line of a processor's cache: each of two is of CPU and memory.
CELLS: Final = 8
HEADROOM, FLOOR, OFFERED, CODE = 0, 2, 4, 6
ROW_BYTES: Final = 8 * CELLS
# All cells of a row before its code at once, from the bytes at which it begins.
cells_of: Final = Struct(f"={CODE}q").unpack_from


class Threshold(NamedTuple):
    """A rule of the filter; a node is over it above `percent` of what it offers."""

    statistic: str
    place: int  # of the resource
    percent: int

    @property
    def reason(self) -> str:
        resource = RESOURCES[self.place]
        return f"node(s) had {resource} in use above {self.percent}% ({self.statistic})"


class Excess(NamedTuple):
    """A node over a threshold.

    used      what was measured
    pending   what pods count beside it that are not measured yet
    allowed   percent of `allocatable` from which down the node gets pods: less than the
              threshold's for one that was over it before
    """

    threshold: Threshold
    used: int
    pending: int
    allocatable: int
    allowed: int


class FollowedScores:
    """Scores that are brought up to date with every change of a row: the share of each resource
    that stays free once the estimate is used as well, by weight.

    estimate  what a pod is expected to use
    formula   that of cpu and of memory, their weights, and the sum of all weights
    cells     the scores by row, as plain numbers
    has_mean  whether some nodes are not usable, and get the mean of the others
    total     the sum of those of usable nodes, if it is needed for the mean
    plain, with_codes   the answers of the plugin, without its verdicts and with them
    """

    __slots__ = ("cells", "estimate", "formula", "has_mean", "plain", "total", "with_codes")

    estimate: Amounts
    formula: tuple[int, int, int, int, int]
    cells: "memoryview[int]"
    has_mean: bool
    total: int
    plain: RowAnswers
    with_codes: RowAnswers

    def enter(self, row: int, free_cpu: int, free_memory: int, cpu: int, memory: int) -> None:
        """The headroom of a usable node is this now; last, what it offers."""
        cpu_estimate, memory_estimate, cpu_weight, memory_weight, weight = self.formula
        free = free_cpu - cpu_estimate
        score = free * MAX_NODE_SCORE // cpu * cpu_weight if free > 0 else 0
        free = free_memory - memory_estimate
        if free > 0:
            score += free * MAX_NODE_SCORE // memory * memory_weight
        score //= weight
        self.total += score - self.cells[row]
        self.cells[row] = score


class LoadRows:
    """The arrays, all by row.

    usable      bool[row]
    allocatable, measured   int64[resource, row]: what the node offers, what scores are made of
    average     int64[resource, row], and deviation likewise where the arguments need it: for
                thresholds, for risk and as Trimaran
    build       how often the arrays were made; `changed` are rows that pods changed since then
    names, node_end   of the snapshot that they were made of
    expiry_ns   the last time at which they hold
    followed    scores that have all changes of rows

    What a placed pod changes, and what is read for it, is in int64[row, cell]; `cells` has all of
    these as plain numbers, one row after the other.

    headroom    int64[resource, row]: allocatable - measured - pending
    floors      below this headroom the average is above a threshold
    offered     as allocatable; 0 where the node is not usable
    codes       int64[row]: the number of the first threshold that the node is over, from 1; else 0
    """

    def __init__(self, args: LoadAwareArgs, usage: UsageView, clock: Clock) -> None:
        self.thresholds = thresholds_of(args.thresholds)
        self._hysteresis = args.hysteresis_percent
        self._statistic = args.statistic
        self._risk = args.risk_percent
        self._reads_deviation = (
            args.risk_percent > 0
            or args.load_variation_risk_balancing is not None
            or args.low_risk_over_commitment is not None
        )
        self._max_age_ns = args.max_age_seconds * NANOSECONDS
        self._usage = usage
        self._now_ns = clock.now_ns
        fade_s = args.estimate.fade_seconds or args.history_seconds
        self.placed = PlacedPods(fade_s * NANOSECONDS)
        self._recent = self.placed.recent
        # What the arrays were made of.
        self.names: list[str] = []
        self.node_end = -1
        self._version = -1
        self.expiry_ns = -1
        usage.subscribe(self._after_measurements)
        self._slots = np.zeros(0, np.intp)
        self._slots_of, self._slot_version = self.names, -1
        self._over = np.zeros((len(self.thresholds), 0), np.bool_)
        self.build = 0
        self.changed: list[int] = []
        self.followed: FollowedScores | None = None
        self.codes_version = 0
        self.usable_count = 0
        self.over_count = 0
        self._set_empty()

    # --- by all rows ---

    def refresh(self, snapshot: Snapshot) -> None:
        """Bring the arrays up to date with the snapshot, the measurements and the time."""
        if (
            snapshot.names is not self.names
            or (snapshot.log.node_end != self.node_end and self._have_nodes_changed(snapshot))
            or self._now_ns() > self.expiry_ns
        ):
            self._rebuild(snapshot, self._now_ns())

    def _after_measurements(self) -> None:
        if self._version != self._usage.version:
            self._expire()

    def _expire(self) -> None:
        """Make the arrays again before they are next read."""
        self.expiry_ns = -1

    def _have_nodes_changed(self, snapshot: Snapshot) -> bool:
        """Whether Node objects changed in what is read of them; most changes are of conditions."""
        self.node_end = snapshot.log.node_end
        return not np.array_equal(_offered(snapshot), self.allocatable)

    def _rebuild(self, snapshot: Snapshot, now_ns: int) -> None:
        if snapshot.names is not self.names:
            self._renumber(snapshot)
        self.build += 1
        self.changed = []
        self.followed = None
        self._version, self.node_end = self._usage.version, snapshot.log.node_end
        nodes, slots = self._usage.nodes, self._find_slots()
        self.allocatable = _offered(snapshot).copy()
        self._measured_ns = _picked(nodes.time_ns, slots, -1)
        self.usable = self._find_usable(_picked(nodes.latest, slots, 0), now_ns)
        self.usable_count = int(np.count_nonzero(self.usable))
        self._newest_ns = int(self._measured_ns.max(initial=-1))
        self.expiry_ns = self._next_expiry()
        self.average = _picked(nodes.average, slots, 0)
        chosen: IntArray = getattr(nodes, self._statistic)
        self.measured = self.average if chosen is nodes.average else _picked(chosen, slots, 0)
        if self._reads_deviation:
            self.deviation = _picked(nodes.deviation, slots, 0)
            self.measured = self.measured + self.deviation * self._risk // 100
        self.placed.file(now_ns - self.placed.fade_ns - self._max_age_ns)
        pending = self.placed.sums(len(self.names), self._measured_ns)
        self._find_codes(nodes, slots, pending)
        table = np.zeros((len(self.names), CELLS), np.int64)
        table[:, HEADROOM : HEADROOM + 2] = (self.allocatable - self.measured - pending).T
        table[:, FLOOR : FLOOR + 2] = self._floors().T
        table[:, OFFERED : OFFERED + 2] = np.where(self.usable, self.allocatable, 0).T
        table[:, CODE] = self.codes
        self._set_table(table)

    def _find_slots(self) -> IntArray:
        """Where the measurements of each node are: mostly where they were."""
        version = self._usage.slot_version
        if self._slots_of is not self.names or self._slot_version != version:
            self._slots = self._usage.slots_of(self.names)
            self._slots_of, self._slot_version = self.names, version
        return self._slots

    def _find_usable(self, latest: IntArray, now_ns: int) -> BoolArray:
        times, offered = self._measured_ns, self.allocatable
        usable = (times >= 0) & (times >= now_ns - self._max_age_ns) & (times <= now_ns + AHEAD_NS)
        for place in range(len(RESOURCES)):
            usable &= (offered[place] > 0) & (latest[place] <= offered[place] * PLAUSIBLE_TIMES)
        return usable

    def _next_expiry(self) -> int:
        """The last time at which all nodes that are usable still are."""
        if not self.usable_count:
            return _NEVER_NS
        return int(self._measured_ns[self.usable].min()) + self._max_age_ns

    def _find_codes(self, nodes: NodeUsage, slots: IntArray, pending: IntArray) -> None:
        codes = np.zeros(len(self.names), np.int64)
        for number, threshold in reversed(list(enumerate(self.thresholds))):
            statistic, place, percent = threshold
            used = _picked(getattr(nodes, statistic)[place], slots, 0) * 100
            offered = self.allocatable[place]
            over = self.usable & (
                (used > percent * offered)
                | (self._over[number] & (used > (percent - self._hysteresis) * offered))
            )
            self._over[number] = over
            if statistic == "average":
                forecast = used + pending[place] * 100
                over = over | (self.usable & (forecast > percent * offered))
            codes[over] = number + 1
        if not np.array_equal(codes, self.codes):
            self.codes_version += 1
        self.codes = codes
        self.over_count = int(np.count_nonzero(codes))

    def _floors(self) -> IntArray:
        """int64[resource, row]: the least headroom at which the average is at no threshold."""
        floors = np.full((len(RESOURCES), len(self.names)), _NO_FLOOR, np.int64)
        for statistic, place, percent in self.thresholds:
            if statistic == "average":
                offered = self.allocatable[place]
                most_pending = percent * offered // 100 - self.average[place]
                least = offered - self.measured[place] - most_pending
                floors[place] = np.where(self.usable, least, _NO_FLOOR)
        return floors

    def _set_table(self, table: IntArray) -> None:
        self.headroom = table[:, HEADROOM : HEADROOM + 2].T
        self.codes = table[:, CODE]
        self.cells = table.reshape(-1).data

    @property
    def pending(self) -> IntArray:
        """int64[resource, row]: what pods count that are not measured yet."""
        return self.allocatable - self.measured - self.headroom

    def _renumber(self, snapshot: Snapshot) -> None:
        """Nodes were added, deleted or reordered: what is kept by row moves with its node."""
        names, row_of = snapshot.names, snapshot.row_of
        rows = map(row_of, self.names)
        numbers = np.array([-1 if row is None else row for row in rows], np.int64)
        over = np.zeros((len(self.thresholds), len(names)), np.bool_)
        kept = np.flatnonzero(numbers >= 0)
        over[:, numbers[kept]] = self._over[:, kept]
        self._over = over
        self.placed.renumber(numbers)
        self.names = names
        self.codes = np.zeros(len(names), np.int64)
        self.codes_version += 1

    def _set_empty(self) -> None:
        self.usable = np.zeros(0, np.bool_)
        self._measured_ns = np.zeros(0, np.int64)
        self._newest_ns = -1
        self.allocatable = self.measured = self.average = self.deviation = np.zeros(
            (2, 0), np.int64
        )
        self._set_table(np.zeros((0, CELLS), np.int64))

    # --- by one row ---

    def renumber(self, snapshot: Snapshot) -> None:
        """Number rows as the snapshot does."""
        if snapshot.names is not self.names:
            self.refresh(snapshot)

    def place(self, row: int, uid: str, time_ns: int, estimate: Amounts) -> bool:
        """Count a pod that was placed on the node of a row; whether it was not counted yet. After
        every placed pod: plain numbers are fastest."""
        cpu_milli, memory_bytes = estimate
        recent = self._recent
        pod = row, time_ns, cpu_milli, memory_bytes
        if recent.setdefault(uid, pod) is not pod:
            return False
        if len(recent) > PLACED_HALF:
            self.placed.file(0)
            self._expire()
        # Without a usable node nothing is read before all rows are made again.
        if self.usable_count:
            if time_ns < self._newest_ns:
                measured_ns = self._measured_ns.item(row)
                counted = self.placed.counted(time_ns, cpu_milli, memory_bytes, measured_ns)
                cpu_milli, memory_bytes = counted
            cells, at = self.cells, row * CELLS
            numbers = cells_of(cells, row * ROW_BYTES)
            cpu, memory, cpu_floor, memory_floor, cpu_offered, memory_offered = numbers
            cells[at] = cpu = cpu - cpu_milli
            cells[at + 1] = memory = memory - memory_bytes
            self.changed.append(row)
            scores = self.followed
            if scores is not None and cpu_offered:
                # As `enter`, without a call.
                cpu_estimate, memory_estimate, cpu_weight, memory_weight, weight = scores.formula
                free = cpu - cpu_estimate
                score = free * MAX_NODE_SCORE // cpu_offered * cpu_weight if free > 0 else 0
                free = memory - memory_estimate
                if free > 0:
                    score += free * MAX_NODE_SCORE // memory_offered * memory_weight
                score //= weight
                if scores.has_mean:
                    scores.total += score - scores.cells[row]
                scores.cells[row] = score
            if cpu < cpu_floor or memory < memory_floor:
                self._find_code(row)
        return True

    def remove(self, uid: str) -> int | None:
        """Do not count the pod any more; the row of its node, None if it was not counted."""
        removed = self.placed.remove(uid)
        if removed is None:
            return None
        row, time_ns, cpu_milli, memory_bytes = removed
        if self.usable_count:
            cells, at = self.cells, row * CELLS
            measured_ns = self._measured_ns.item(row)
            counted = self.placed.counted(time_ns, cpu_milli, memory_bytes, measured_ns)
            cells[at] += counted.cpu_milli
            cells[at + 1] += counted.memory_bytes
            self._note(row)
            if cells[at + CODE]:
                self._find_code(row)
        return row

    def _note(self, row: int) -> None:
        cpu, memory, _, _, cpu_offered, memory_offered = cells_of(self.cells, row * ROW_BYTES)
        self.changed.append(row)
        if len(self.changed) > PLACED_HALF:
            self._expire()
        if cpu_offered and self.followed is not None:
            self.followed.enter(row, cpu, memory, cpu_offered, memory_offered)

    def _find_code(self, row: int) -> None:
        # No other version: the snapshot has noted that this row changes, or will.
        at = row * CELLS + CODE
        before, after = self.cells[at], self._code_of(row)
        self.cells[at] = after
        self.over_count += bool(after) - bool(before)

    def _code_of(self, row: int) -> int:
        for number, (statistic, place, percent) in enumerate(self.thresholds):
            if self._over[number, row]:
                return number + 1
            if statistic == "average":
                used = self.average.item(place, row) + self._pending(place, row)
                if used * 100 > percent * self.allocatable.item(place, row):
                    return number + 1
        return 0

    def _pending(self, place: int, row: int) -> int:
        measured, headroom = self.measured.item(place, row), self.headroom.item(place, row)
        return self.allocatable.item(place, row) - measured - headroom

    # --- reading ---

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether rows are still numbered as in the snapshot."""
        return snapshot.names is self.names

    def excess(self, row: int) -> "Excess | None":
        """Which threshold the node is over, and by how much; None if it is over none."""
        code = self.codes.item(row)
        if not code:
            return None
        statistic, place, percent = threshold = self.thresholds[code - 1]
        column: IntArray = getattr(self._usage.nodes, statistic)
        slots = self._usage.slots_of([self.names[row]])
        used, offered = _picked(column, slots, 0).item(place, 0), self.allocatable.item(place, row)
        pending = self._pending(place, row) if statistic == "average" else 0
        is_held = (used + pending) * 100 <= percent * offered
        allowed = percent - self._hysteresis if is_held else percent
        return Excess(threshold, used, pending, offered, allowed)

    def counts(self) -> tuple[int, int, int]:
        """How many nodes are usable, have a measurement that is not, and have none."""
        measured = int(np.count_nonzero(self._measured_ns >= 0))
        return self.usable_count, measured - self.usable_count, len(self.names) - measured


def thresholds_of(args: LoadThresholds) -> list[Threshold]:
    """The rules of the filter, in the order in which they are checked."""
    return [
        Threshold(statistic, place, given[name])
        for statistic, given in (("average", args.average), ("p95", args.p95), ("peak", args.peak))
        for place, name in enumerate(RESOURCES)
        if name in given
    ]


def _offered(snapshot: Snapshot) -> IntArray:
    """int64[resource, row]: what nodes offer."""
    return snapshot.columns.block[ALLOCATABLE][: len(RESOURCES)]


def _picked(column: IntArray, slots: IntArray, missing: int) -> IntArray:
    """The values of these slots, `missing` where there is none."""
    if not column.shape[-1]:
        return np.full((*column.shape[:-1], len(slots)), missing, np.int64)
    found, is_missing = column.take(slots, axis=-1), slots < 0
    if is_missing.any():
        found[..., is_missing] = missing
    return found
