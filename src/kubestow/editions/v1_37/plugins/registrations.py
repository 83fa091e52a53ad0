"""Registrations for events of pods, in the form of v1.37 (spec 12 §3.3)."""

from kubestow.framework.events import Registrations, Resource


def of_assigned_pods(registrations: Registrations) -> Registrations:
    """The registrations, where those for events of any pod are for pods on nodes alone."""
    return [
        registration._replace(event=registration.event._replace(resource=Resource.ASSIGNED_POD))
        if registration.event.resource == Resource.POD
        else registration
        for registration in registrations
    ]
