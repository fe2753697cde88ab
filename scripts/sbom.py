"""A CycloneDX 1.5 bill of materials of one binary: from `cargo metadata` on standard input, only what is linked into it.
Usage: cargo metadata --locked --format-version 1 | sbom.py PACKAGE EPOCH TREE
TREE is what `cargo tree` lists of the package's normal dependencies: metadata knows the features of the whole workspace
only, which are more."""

import hashlib
import json
import sys
import uuid
from datetime import datetime, timezone


def listed(tree):
    """Names and versions, such as (`bytes`, `1.12.1`) of the line `bytes v1.12.1 (*)`."""
    with open(tree, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip()]
    return {(line[0], line[1].removeprefix("v")) for line in lines}


def linked(metadata, root, tree):
    """The packages that are linked, each with those that it needs."""
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
        sys.exit(f"sbom.py: {len(found)} packages were found of {len(tree)}")
    return found


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind):
    told = {
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
        "scope": "required",
    }
    if package.get("description"):
        told["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # Cargo once allowed a slash for OR.
        told["licenses"] = [{"expression": " ".join(package["license"].replace("/", " OR ").split())}]
    if package.get("repository"):
        told["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return told


def checksums(lock):
    """The digests that the lockfile has of what registries gave."""
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
        told = component(package, "library")
        digest = digests.get((package["name"], package["version"]))
        if digest:
            told["hashes"] = [{"alg": "SHA-256", "content": digest}]
        components.append(told)
    order = sorted(graph, key=lambda id: purl(packages[id]))
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same of the same sources, so that a release can be built again and compared.
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
