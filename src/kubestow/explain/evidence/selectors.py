"""Label selectors as people write them."""

from collections.abc import Iterable

from kubestow.api.labels import Requirement, Selector


def selector_text(selector: Selector) -> str:
    """A selector in words, such as `app=web, tier in a,b`."""
    if selector.is_nothing:
        return "no labels at all"
    return requirements_text(selector.requirements) or "any labels"


def requirements_text(requirements: Iterable[Requirement]) -> str:
    return ", ".join(map(_text, requirements))


def _text(requirement: Requirement) -> str:
    values = ",".join(sorted(requirement.values))
    match requirement.operator:
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}={values}"
        case "In":
            return f"{requirement.key} in {values}"
        case "NotIn":
            return f"{requirement.key} not in {values}"
        case "Exists":
            return requirement.key
        case "DoesNotExist":
            return f"!{requirement.key}"
        case "Gt":
            return f"{requirement.key} > {requirement.threshold}"
        case "Lt":
            return f"{requirement.key} < {requirement.threshold}"
