"""Defaults of resource claims and their templates (spec 08 B2)."""

from kubestow.api.device import EXACT_COUNT
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, is_object, objects_in, replaced_at, value_at


def default_claim(document: JsonObject) -> JsonObject:
    return _with_requests(document, "spec", "devices", "requests")


def default_claim_template(document: JsonObject) -> JsonObject:
    return _with_requests(document, "spec", "spec", "devices", "requests")


def _with_requests(document: JsonObject, *path: str) -> JsonObject:
    requests = objects_in(value_at(document, *path))
    changed = [_defaulted_request(request) for request in requests]
    return document if changed == requests else replaced_at(document, path, changed)


def _defaulted_request(request: JsonObject) -> JsonObject:
    if is_object(request.get("exactly")):
        request = {**request, "exactly": _defaulted_details(as_object(request["exactly"]))}
    if request.get("firstAvailable"):
        alternatives = [_defaulted_details(each) for each in objects_in(request["firstAvailable"])]
        request = {**request, "firstAvailable": alternatives}
    return request


def _defaulted_details(details: JsonObject) -> JsonObject:
    if not details.get("allocationMode"):
        details = {**details, "allocationMode": EXACT_COUNT}
    if details["allocationMode"] == EXACT_COUNT and not details.get("count"):
        details = {**details, "count": 1}
    if details.get("tolerations"):
        tolerations = [
            each if each.get("operator") else {**each, "operator": "Equal"}
            for each in objects_in(details["tolerations"])
        ]
        details = {**details, "tolerations": tolerations}
    return details
