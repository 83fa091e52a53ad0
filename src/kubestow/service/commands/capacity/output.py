"""What `kubestow capacity` prints: a sentence with the answer, then a table with the parts."""

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubestow.plural import counted, plural, some_of
from kubestow.redaction import printable
from kubestow.service.formats import DataFormat
from kubestow.service.output import print_data, say
from kubestow.simulator.capacity.drain_check import DrainCheck
from kubestow.simulator.capacity.fit import Fit, Limit
from kubestow.simulator.capacity.headroom import Headroom, PoolUse
from kubestow.simulator.capacity.need import Need
from kubestow.table import Table

_NAMES_SHOWN: Final = 8
_WAITING_SHOWN: Final = 5


def print_fit(found: Fit, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        print_data(found, output)
        return
    each = "" if found.pods_per_copy == 1 else f" of {found.pods_per_copy} pods"
    more = " or more" if found.is_cut else ""
    place = f" on {len(found.nodes)} of {counted(found.node_count, 'node')}" if found.copies else ""
    fits = "fits" if found.copies == 1 and not found.is_cut else "fit"
    say(f"{found.copies}{more} {plural('copy', found.copies)}{each} {fits}{place}")
    if found.waiting:
        waits = "waits" if found.waiting == 1 else "wait"
        say(f"{counted(found.waiting, 'pod')} of the cluster {waits} for a node already")
    if found.nodes:
        say("")
        _share_table(found).print()
    if found.limited_by:
        another = "another" if found.pods_per_copy == 1 else found.pod
        say(f"\nWhat keeps nodes from taking {another}:\n")
        _limit_table(found.limited_by).print()
    elif found.message:
        say(f"\nNo more, because: {printable(found.message)}")


def _share_table(found: Fit) -> Table:
    """Nodes that took as many are one row."""
    by_count: dict[int, list[str]] = {}
    for share in found.nodes:
        by_count.setdefault(share.pods, []).append(share.name)
    first = "COPIES" if found.pods_per_copy == 1 else "PODS"
    table = Table(first, "NODES", "NAMES", right=(first, "NODES"))
    for count, names in sorted(by_count.items(), reverse=True):
        table.add(str(count), str(len(names)), some_of(names, _NAMES_SHOWN))
    return table


def _limit_table(limits: Sequence[Limit]) -> Table:
    table = Table("NODES", "WITH COPIES", "REASON", right=("NODES", "WITH COPIES"))
    for limit in limits:
        table.add(str(limit.nodes), str(limit.nodes_with_copies), limit.reason)
    return table


def print_need(found: Need, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        print_data(found, output)
        return
    if found.waiting:
        all_pods = "the pod" if found.pods == 1 else f"all {found.pods} pods"
        say(f"No number of these nodes suffices for {all_pods}")
        for waiting in found.waiting[:_WAITING_SHOWN]:
            say(f"  {waiting.pod}: {printable(waiting.message)}")
        if len(found.waiting) > _WAITING_SHOWN:
            say(f"  and {len(found.waiting) - _WAITING_SHOWN} more")
        return
    if not found.nodes:
        say(f"No node is needed: {counted(found.pods, 'pod')} without a node fit on those there")
        return
    parts = ", ".join(f"{entry.count} {entry.shape}" for entry in found.nodes)
    needed = "is" if found.node_count == 1 else "are"
    price = "" if found.price is None else f", price {found.price:.10g}"
    say(
        f"{counted(found.node_count, 'node')} {needed} needed for {counted(found.pods, 'pod')}: "
        f"{parts}{price}"
    )
    less = "fewer nodes do not suffice" if found.price is None else "nothing cheaper suffices"
    tried = f"{counted(found.tried, 'set')} of nodes tried"
    if found.is_proven:
        say(f"{less.capitalize()} ({tried})")
    else:
        say(f"The best of {tried}; there may be a better one (--tries)")


def print_drain_check(found: DrainCheck, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        print_data(found, output)
        return
    could = f"{len(found.removable)} of {counted(found.node_count, 'node')} could go"
    say(f"{could}, in this order:\n" if found.removable else could)
    if found.removable:
        table = Table("NODE", "PODS", "THEY GO TO", right=("PODS",))
        for entry in found.removable:
            nodes = sorted({move.node for move in entry.moves})
            table.add(entry.name, str(len(entry.moves)), some_of(nodes, _NAMES_SHOWN))
        table.print()
    if found.needed:
        say("\nThe others are needed:\n")
        table = Table("NODE", "POD", "WHY")
        for needed in found.needed:
            table.add(needed.name, needed.pod, needed.reason)
        table.print()


def print_headroom(found: Headroom, output: DataFormat) -> None:
    if output is not DataFormat.TABLE:
        print_data(found, output)
        return
    used = () if _has_no_use(found) else ("MEASURED", "IDLE CPU", "IDLE MEMORY")
    right = ("NODES", "FREE CPU", "FREE MEMORY", "FREE PODS", "COPIES", *used)
    table = Table("POOL", *right, "WHAT RUNS OUT", right=right)
    for pool in found.pools:
        reasons = [limit.reason for limit in pool.limited_by if limit.nodes_with_copies]
        others = [limit.reason for limit in pool.limited_by]
        table.add(
            pool.name or "-",
            str(pool.nodes),
            f"{pool.free_cpu_milli / 1000:.1f}",
            f"{pool.free_memory_bytes / 2**30:.1f}Gi",
            str(pool.free_pods),
            str(pool.copies),
            *_use_cells(pool.in_use),
            ", ".join(reasons or others[:1]),
        )
    table.print()
    if found.label:
        say(f"\nPools by the label {found.label}")
    if used:
        say("Idle: allocatable of the measured nodes, without the p95 of what each used")


def _has_no_use(found: Headroom) -> bool:
    return any(isinstance(pool.in_use, UnsetType) for pool in found.pools)


def _use_cells(used: PoolUse | UnsetType) -> tuple[str, ...]:
    if isinstance(used, UnsetType):
        return ()
    return (
        str(used.measured_nodes),
        f"{used.idle_cpu_milli / 1000:.1f}",
        f"{used.idle_memory_bytes / 2**30:.1f}Gi",
    )
