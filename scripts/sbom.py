"""The bill of materials of a release, as CycloneDX 1.6: what the package and the image contain.

Written from the locks alone, that of Python and that of the page: names, versions, hashes, and
which package needs which. The same locks and files give the same bytes. They name no registry, so
neither does this.
"""

import base64
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

NAME: Final = "kubestow"
_PIN: Final = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))? \\")
_HASH: Final = re.compile(r"    --hash=sha256:(?P<hash>[0-9a-f]{64})")
_VIA: Final = re.compile(r"    # (?:via |  )(?P<name>[A-Za-z0-9._-]+)(?: \(.+\))?")
_BASE: Final = re.compile(
    r"^ARG BASE=(?P<name>[^@\n]+):(?P<tag>[^:@\n]+)(?:@sha256:(?P<hash>.+))?$", re.M
)

_NPM_FOLDER: Final = "node_modules/"

Json = dict[str, Any]


class Locked(NamedTuple):
    """A package of the lock."""

    name: str
    version: str
    marker: str  # where it is installed; empty: everywhere
    hashes: tuple[str, ...]  # one for each file of it that may be installed
    needed_by: tuple[str, ...]
    kind: str = "pypi"  # or npm
    algorithm: str = "sha256"  # of the hashes

    @property
    def reference(self) -> str:
        return f"pkg:{self.kind}/{quote(self.name)}@{self.version}"


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


def bundled_packages(text: str) -> list[Locked]:
    """The packages of a lock of npm that become part of the page; not those that build it."""
    entries: Json = json.loads(text)["packages"]
    own = {NAME: entries[""].get("dependencies", {})}
    bundled = {
        path.removeprefix(_NPM_FOLDER): entry
        for path, entry in entries.items()
        if path and not entry.get("dev")
    }
    needs = own | {name: entry.get("dependencies", {}) for name, entry in bundled.items()}
    return [
        Locked(
            name=name,
            version=entry["version"],
            marker="",
            hashes=(base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex(),),
            needed_by=tuple(sorted(by for by, needed in needs.items() if name in needed)),
            kind="npm",
            algorithm="sha512",
        )
        for name, entry in sorted(bundled.items())
    ]


def bill_of_materials(
    *,
    version: str,
    created: str,
    lock: str,
    page_lock: str,
    containerfile: str,
    files: Mapping[str, str],
) -> bytes:
    """The document; `files` are those of the release with their SHA-256."""
    packages = [*locked_packages(lock), *bundled_packages(page_lock)]
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
    name = f"{NAME}:file:{package.algorithm}"
    properties = [{"name": name, "value": digest} for digest in package.hashes]
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
