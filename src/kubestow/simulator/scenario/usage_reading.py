"""Reads what a scenario says about the use of pods; every error names file, line and field."""

import re
from collections.abc import Collection
from typing import Final

from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import CPU, MEMORY, amount
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.simulator.scenario.action_reading import ActionReader
from kubestow.simulator.scenario.document import (
    BurstCurve,
    CurveEntry,
    DailyCurve,
    PeakCurve,
    PodCurves,
    Pods,
    Usage,
)
from kubestow.simulator.scenario.document import Level as WrittenLevel
from kubestow.simulator.scenario.source import FieldPath, near
from kubestow.simulator.usage.curves import Curve
from kubestow.simulator.usage.plan import (
    IsMeant,
    Level,
    ResourceCurve,
    UsagePlan,
    WorkloadCurves,
)

_PERCENT: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*%$")
_SHARE_MAX: Final = 1000.0
_FIELD: Final = "usage"
_KINDS: Final = ("constant", "daily", "bursts", "peaks")


class UsePlanReader:
    """Reads the field `usage` of a scenario."""

    def __init__(self, reader: ActionReader, arrivals: Collection[str]) -> None:
        """`arrivals` are the names of the entries of arrivals."""
        self._reader = reader
        self._source = reader.source
        self._arrivals = arrivals

    def plan(self, usage: Usage) -> UsagePlan:
        seconds = self._source.seconds
        return UsagePlan(
            entries=[
                self._curves((_FIELD, "curves", index), entry)
                for index, entry in enumerate(usage.curves)
            ],
            every_s=seconds((_FIELD, "every"), usage.every, least_s=1.0),
            hot_share=self._share((_FIELD, "hot"), usage.hot),
            threshold=self._level((_FIELD, "evictionHard"), usage.eviction_hard, MEMORY),
            metrics_every_s=seconds((_FIELD, "metrics", "every"), usage.metrics.every, least_s=1.0),
            metrics_delay_s=seconds((_FIELD, "metrics", "delay"), usage.metrics.delay),
        )

    def _curves(self, path: FieldPath, entry: PodCurves) -> WorkloadCurves:
        return WorkloadCurves(
            self._is_meant((*path, "pods"), entry.pods),
            cpu=self._resource((*path, "cpu"), entry.cpu, CPU),
            memory=self._resource((*path, "memory"), entry.memory, MEMORY),
            spread=entry.spread,
            noise=self._share((*path, "noise"), entry.noise),
        )

    def _is_meant(self, path: FieldPath, pods: Pods | None) -> IsMeant:
        if pods is None:
            return lambda store, pod, owner: True
        if isinstance(pods, str) and "/" not in pods:
            if pods not in self._arrivals:
                known = near(pods, self._arrivals)
                problem = f'is "{pods}": no entry of arrivals has this name{known}'
                hint = "" if known else "; expected one of them, or KIND/NAME"
                raise self._source.error(path, problem + hint)
            return lambda store, pod, owner: owner == pods
        target = self._reader.pods(path, pods)

        def is_meant(store: MemoryCluster, pod: StoredObject, owner: str) -> bool:
            return target.matches(store, pod)

        return is_meant

    def _resource(
        self, path: FieldPath, given: WrittenLevel | CurveEntry | None, resource: str
    ) -> ResourceCurve:
        if given is None:
            return ResourceCurve()
        if not isinstance(given, CurveEntry):
            level = self._level(path, given, resource)
            return ResourceCurve(level, level)
        found = [kind for kind in _KINDS if getattr(given, kind) is not None]
        if len(found) != 1:
            raise self._source.error(
                path, f"found {' and '.join(found) or 'none'}, expected one of {', '.join(_KINDS)}"
            )
        place = (*path, found[0])
        if given.constant is not None:
            level = self._level(place, given.constant, resource)
            return ResourceCurve(level, level)
        curve = given.daily or given.bursts or given.peaks
        assert curve is not None, given
        return ResourceCurve(
            self._level((*place, "low"), curve.low, resource),
            self._level((*place, "high"), curve.high, resource),
            self._daily(place, curve)
            if isinstance(curve, DailyCurve)
            else self._bursts(place, curve),
        )

    def _daily(self, path: FieldPath, given: DailyCurve) -> Curve:
        return Curve(
            "daily",
            period_s=self._source.seconds((*path, "period"), given.period, least_s=1.0),
            peak_s=self._source.seconds((*path, "peakAt"), given.peak_at),
        )

    def _bursts(self, path: FieldPath, given: BurstCurve) -> Curve:
        every_s = self._source.seconds((*path, "every"), given.every, least_s=1.0)
        lasts_s = self._source.seconds((*path, "for"), given.lasts, least_s=1.0)
        if lasts_s > every_s:
            raise self._source.error((*path, "for"), f"is {given.lasts}, longer than every")
        if isinstance(given, PeakCurve):
            return Curve("peaks", period_s=every_s, lasts_s=lasts_s, group=given.group)
        return Curve("bursts", period_s=every_s, lasts_s=lasts_s)

    # --- values ---

    def _level(self, path: FieldPath, value: WrittenLevel, resource: str) -> Level:
        """A share of the request, or an amount."""
        text = str(value).strip()
        if (found := _PERCENT.match(text)) is not None:
            return Level(share=self._in_range(path, text, float(found["number"]) / 100))
        try:
            quantity = parse_quantity(text)
        except ValueError:
            quantity = None
        if quantity is None or quantity < parse_quantity(0):
            example = "300m" if resource == CPU else "2Gi"
            problem = f'is "{text}", expected a share such as 60%, or an amount such as {example}'
            raise self._source.error(path, problem)
        return Level(amount=amount(resource, quantity))

    def _share(self, path: FieldPath, value: str | float) -> float:
        """A share as a number, or as a percentage."""
        text = str(value).strip()
        found = _PERCENT.match(text)
        try:
            share = float(found["number"]) / 100 if found is not None else float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            problem = f'is "{text}", expected a share from 0 to 100% such as 80% or 0.8'
            raise self._source.error(path, problem)
        return share

    def _in_range(self, path: FieldPath, text: str, share: float) -> float:
        if share > _SHARE_MAX:
            raise self._source.error(path, f"is {text}, expected at most {_SHARE_MAX * 100:,.0f}%")
        return share
