"""VolumeRestrictions of v1.37 (spec 12 §3.3)."""

from kubestow.editions.v1_37.plugins.registrations import of_assigned_pods
from kubestow.framework.events import Registrations
from kubestow.plugins.volume_restrictions import VolumeRestrictions


class VolumeRestrictionsV137(VolumeRestrictions):
    def events(self) -> Registrations:
        return of_assigned_pods(super().events())
