"""A pod with other parts: helpers of all modules that change pods."""

import msgspec

from kubestow.api.pod import Affinity, Pod


def with_spec(pod: Pod, **fields: object) -> Pod:
    """The pod with other fields in its spec."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def with_affinity(pod: Pod, **fields: object) -> Pod:
    affinity = msgspec.structs.replace(pod.spec.affinity or Affinity(), **fields)
    return with_spec(pod, affinity=None if affinity == Affinity() else affinity)
