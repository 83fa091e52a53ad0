"""The bill of materials of a release, as CycloneDX 1.6: what the package and the image contain.

Written from the lock alone: names, versions, hashes, and which package needs which. The same lock
and files give the same bytes. The lock names no registry, so neither does this.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

NAME: Final = "kubestow"
_PIN: Final = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))? \\")
_HASH: Final = re.compile(r"    --hash=sha256:(?P<hash>[0-9a-f]{64})")
_VIA: Final = re.compile(r"    # (?:via |  )(?P<name>[A-Za-z0-9._-]+)(?: \(.+\))?")
_BASE: Final = re.compile(
    r"^ARG BASE=(?P<name>[^@\n]+):(?P<tag>[^:@\n]+)(?:@sha256:(?P<hash>.+))?$", re.M
)

Json = dict[str, Any]


class Locked(NamedTuple):
    """A package of the lock."""

    name: str
    version: str
    marker: str  # where it is installed; empty: everywhere
    hashes: tuple[str, ...]  # one for each file of it that may be installed
    needed_by: tuple[str, ...]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def locked_packages(text: str) -> list[Locked]:
    """The packages of a lock as `uv pip compile` writes it."""
    found: list[Locked] = []
    for line in text.splitlines():
        if pin := _PIN.fullmatch(line):
            found.append(Locked(pin["name"], pin["version"], pin["marker"] or "", (), ()))
        elif part := _HASH.match(line):
            found[-1] = found[-1]._replace(hashes=(*found[-1].hashes, part["hash"]))
        elif part := _VIA.fullmatch(line):
            found[-1] = found[-1]._replace(needed_by=(*found[-1].needed_by, part["name"]))
    return found


def bill_of_materials(
    *, version: str, created: str, lock: str, containerfile: str, files: Mapping[str, str]
) -> bytes:
    """The document; `files` are those of the release with their SHA-256."""
    packages = locked_packages(lock)
    own = f"pkg:pypi/{NAME}@{version}"
    document: Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": NAME,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [
            *map(_library, packages),
            *(_file(name, digest) for name, digest in sorted(files.items())),
            _base_image(containerfile),
        ],
        "dependencies": [*_dependencies(own, packages)],
    }
    # Another document has another number, the same one the same.
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    return f"{json.dumps(document, indent=2, sort_keys=True)}\n".encode()


def _library(package: Locked) -> Json:
    properties = [{"name": f"{NAME}:file:sha256", "value": digest} for digest in package.hashes]
    if package.marker:
        properties.append({"name": f"{NAME}:marker", "value": package.marker})
    return {
        "type": "library",
        "bom-ref": package.reference,
        "name": package.name,
        "version": package.version,
        "purl": package.reference,
        "properties": properties,
    }


def _file(name: str, digest: str) -> Json:
    return {
        "type": "file",
        "bom-ref": f"file:{name}",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _base_image(containerfile: str) -> Json:
    """What the image is built on; its own packages are not listed here."""
    base = _BASE.search(containerfile)
    assert base is not None, "the Containerfile names no base"
    component: Json = {
        "type": "container",
        "bom-ref": "base-image",
        "name": base["name"],
        "version": base["tag"],
    }
    if base["hash"]:
        component["hashes"] = [{"alg": "SHA-256", "content": base["hash"]}]
    return component


def _dependencies(own: str, packages: Iterable[Locked]) -> Iterable[Json]:
    needed: dict[str, list[str]] = {NAME: []}
    references = {NAME: own}
    for package in packages:
        references[package.name] = package.reference
        for name in package.needed_by:
            needed.setdefault(name, []).append(package.reference)
    for name, reference in references.items():
        yield {"ref": reference, "dependsOn": sorted(needed.get(name, ()))}
