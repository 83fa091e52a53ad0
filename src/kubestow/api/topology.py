"""Well-known topology labels, and the zone by which nodes are visited in turn (spec 01 §11).

Not here: topology keys that pods name in their specs; those are plain labels.
"""

from collections.abc import Mapping
from typing import Final

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
BETA_ZONE_LABEL: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION_LABEL: Final = "failure-domain.beta.kubernetes.io/region"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"


def zone_key(labels: Mapping[str, str]) -> str:
    """Region and zone as one text, different for any two pairs; empty if the node has neither."""
    region = _first_present(labels, BETA_REGION_LABEL, REGION_LABEL)
    zone = _first_present(labels, BETA_ZONE_LABEL, ZONE_LABEL)
    if not region and not zone:
        return ""
    return f"{region}:\0:{zone}"


def _first_present(labels: Mapping[str, str], beta: str, stable: str) -> str:
    # The beta label wins if present: an empty value of it hides the stable one.
    value = labels.get(beta)
    return labels.get(stable, "") if value is None else value
