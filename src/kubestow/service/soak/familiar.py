"""Pods of a few applications, equal to each other: most pods of a cluster are like this."""

from typing import Final

from kubestow.service.soak.pod_draft import HOSTNAME, ZONE, PodDraft

APPS: Final = 20


def fill_familiar(draft: PodDraft) -> None:
    number = int(draft.rng.integers(APPS))
    app = f"app-{number}"
    selector = {"matchLabels": {"app": app}}
    draft.labels |= {"app": app, "team": str(number % 3)}
    draft.container["image"] = app
    draft.requests |= {"cpu": f"{number * 25 + 25}m", "memory": f"{number * 16 + 16}Mi"}
    match number % 5:
        case 0:
            draft.spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": number % 4 + 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        case 1:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            draft.add_affinity(
                "podAntiAffinity", "preferred", {"weight": 1, "podAffinityTerm": term}
            )
        case 2:
            draft.spec["nodeSelector"] = {ZONE: f"zone-{number % 4}"}
        case 3:
            draft.spec["priority"] = number
        case _:
            pass
