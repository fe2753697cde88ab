"""Writes a CycloneDX 1.5 bill of materials of one binary: the packages that are linked into it.
Usage: cargo metadata --locked --format-version 1 | sbom.py PACKAGE EPOCH TREE
TREE is a file with the `cargo tree` output of the package's normal dependencies. It is needed because `cargo metadata`
resolves the features of the whole workspace, which include more packages."""

import hashlib
import json
import sys
import uuid
from datetime import datetime, timezone


def listed(tree):
    """Returns names and versions, such as (`bytes`, `1.12.1`) for the line `bytes v1.12.1 (*)`."""
    with open(tree, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    return {(line[0], line[1].removeprefix("v")) for line in lines}


def linked(metadata, root, tree):
    """Returns the linked packages with their dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    kept = {package["id"] for package in metadata["packages"] if (package["name"], package["version"]) in tree}
    found, todo = {}, [root]
    while todo:
        package = todo.pop()
        if package in found:
            continue
        normal = [
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if dependency["pkg"] in kept and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        found[package] = normal
        todo.extend(normal)
    if len(found) != len(tree):
        sys.exit(f"sbom.py: found {len(found)} of {len(tree)} packages")
    return found


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind):
    fields = {
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
        "scope": "required",
    }
    if package.get("description"):
        fields["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # Older manifests use a slash for OR.
        fields["licenses"] = [{"expression": " ".join(package["license"].replace("/", " OR ").split())}]
    if package.get("repository"):
        fields["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return fields


def checksums(lock):
    """Returns the SHA-256 checksums in the lockfile by package name and version."""
    found, current = {}, {}
    for line in lock.splitlines():
        if line == "[[package]]":
            current = {}
        elif " = " in line:
            key, value = line.split(" = ", 1)
            current[key] = value.strip('"')
            if key == "checksum":
                found[current["name"], current["version"]] = current["checksum"]
    return found


def main(name, epoch, tree):
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(id for id in metadata["workspace_members"] if packages[id]["name"] == name)
    graph = linked(metadata, root, listed(tree))
    with open("Cargo.lock", encoding="utf-8") as file:
        lock = file.read()
    digests = checksums(lock)
    components = []
    for package in sorted((packages[id] for id in graph if id != root), key=purl):
        entry = component(package, "library")
        digest = digests.get((package["name"], package["version"]))
        if digest:
            entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
        components.append(entry)
    order = sorted(graph, key=lambda id: purl(packages[id]))
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # Derived from the lockfile, so that builds are reproducible.
        "serialNumber": f"urn:uuid:{uuid.UUID(hashlib.sha256(lock.encode()).hexdigest()[:32])}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(packages[root], "application"),
        },
        "components": components,
        "dependencies": [
            {"ref": purl(packages[id]), "dependsOn": sorted({purl(packages[on]) for on in graph[id]})} for id in order
        ],
    }
    json.dump(bom, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
