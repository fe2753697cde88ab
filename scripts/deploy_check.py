"""Checks that deploy/ gives the service no more rights than it needs, and that its files are consistent.
With the argument `compose` or `kubernetes`, prints the environment of a node there instead."""

import os
import sys

import yaml

COMPOSE = "deploy/docker/compose.yaml"
KUBERNETES = "deploy/kubernetes"

problems = []


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def require(condition, problem):
    if not condition:
        problems.append(problem)


def compose_environment():
    return load(COMPOSE)["services"]["node-1"]["environment"]


def container():
    return load(f"{KUBERNETES}/deployment.yaml")["spec"]["template"]["spec"]["containers"][0]


def kubernetes_environment():
    # The only value without "value" is the name of the pod.
    return {variable["name"]: variable.get("value", "tollgate-5d9c7b6f4-x2x7p") for variable in container()["env"]}


def check_compose():
    compose = load(COMPOSE)
    for name, service in compose["services"].items():
        where = f"{COMPOSE}: {name}"
        require(service.get("read_only") is True, f"{where} has a writable root file system")
        require(service.get("cap_drop") == ["ALL"], f"{where} keeps capabilities")
        require("no-new-privileges:true" in service.get("security_opt", []), f"{where} may gain privileges")
        require(service.get("mem_limit"), f"{where} has no memory limit")
        require(":" in service["image"], f"{where} has an image without a tag")
        for port in service.get("ports", []):
            require(port.startswith("127.0.0.1:"), f"{where} listens on more than loopback: {port}")
        for kind in ["secrets", "configs"]:
            for used in service.get(kind, []):
                source = used if isinstance(used, str) else used["source"]
                require(source in compose[kind], f"{where} uses {source}, which is missing in {kind}")
        for key, value in service.get("environment", {}).items():
            secret = value.startswith("/run/secrets/") and value.removeprefix("/run/secrets/")
            require(not secret or secret in service["secrets"], f"{where}: the file of {key} is not mounted")
            require(not key.endswith(("_TOKEN", "_REDIS")), f"{where}: {key} is a secret in the environment")
    for config in compose["configs"].values():
        path = os.path.join("deploy/docker", config["file"])
        require(os.path.exists(path), f"{COMPOSE}: {path} does not exist")
    ids = [service["environment"]["TOLLGATE_NODE_ID"] for service in compose["services"].values() if "environment" in service]
    require(len(ids) == 2 and len(set(ids)) == 2, f"{COMPOSE}: node ids are not unique: {ids}")


def check_kubernetes():
    kustomization = load(f"{KUBERNETES}/kustomization.yaml")
    for resource in kustomization["resources"] + kustomization["configMapGenerator"][0]["files"]:
        require(os.path.exists(f"{KUBERNETES}/{resource}"), f"{KUBERNETES}: {resource} does not exist")
    require("secret.example.yaml" not in kustomization["resources"], f"{KUBERNETES}: secret.example.yaml is applied")
    deployment = load(f"{KUBERNETES}/deployment.yaml")["spec"]
    pod, node = deployment["template"]["spec"], container()
    where = f"{KUBERNETES}/deployment.yaml"
    require(pod["securityContext"]["runAsNonRoot"] is True, f"{where}: may run as root")
    require(pod["securityContext"]["runAsUser"] == 65532, f"{where}: is not the user of the image")
    require(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", f"{where}: has no seccomp profile")
    require(pod["automountServiceAccountToken"] is False, f"{where}: mounts a service account token")
    context = node["securityContext"]
    require(context["readOnlyRootFilesystem"] is True, f"{where}: has a writable root file system")
    require(context["allowPrivilegeEscalation"] is False, f"{where}: may gain privileges")
    require(context["capabilities"]["drop"] == ["ALL"], f"{where}: keeps capabilities")
    probes = {probe: node[f"{probe}Probe"]["httpGet"]["path"] for probe in ["startup", "liveness", "readiness"]}
    require(probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}, f"{where}: wrong probes {probes}")
    environment = kubernetes_environment()
    drain = int(environment["TOLLGATE_DRAIN_MS"]) / 1000
    require(pod["terminationGracePeriodSeconds"] > drain + 30, f"{where}: is killed before it has drained")
    require(environment["TOLLGATE_ADMIN"].startswith("127.0.0.1:"), f"{where}: the admin listener is not on loopback")
    mounts = {mount["mountPath"]: mount for mount in node["volumeMounts"]}
    for key, value in environment.items():
        if key.endswith("_FILE") or key == "TOLLGATE_POLICY":
            require(os.path.dirname(value) in mounts, f"{where}: {key}: nothing is mounted at {value}")
    require(not any("subPath" in mount for mount in mounts.values()), f"{where}: files mounted with subPath are never updated")
    secret = load(f"{KUBERNETES}/secret.example.yaml")
    for value in environment.values():
        if value.startswith("/run/secrets/tollgate/"):
            require(os.path.basename(value) in secret["stringData"], f"secret.example.yaml lacks {os.path.basename(value)}")
    labels = deployment["template"]["metadata"]["labels"].items()
    for name, path in [
        ("service.yaml", ["selector"]),
        ("poddisruptionbudget.yaml", ["selector", "matchLabels"]),
        ("networkpolicy.yaml", ["podSelector", "matchLabels"]),
    ]:
        selector = load(f"{KUBERNETES}/{name}")["spec"]
        for key in path:
            selector = selector[key]
        require(selector.items() <= labels, f"{KUBERNETES}/{name} does not select the pods of the Deployment")
    monitor = load(f"{KUBERNETES}/servicemonitor.yaml")["spec"]
    service = load(f"{KUBERNETES}/service.yaml")
    require(monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), "servicemonitor.yaml does not select the Service")
    ports = {port["name"] for port in service["spec"]["ports"]}
    require({end["port"] for end in monitor["endpoints"]} <= ports, "servicemonitor.yaml: unknown port")
    # Alert rules select this job name.
    require(service["metadata"]["labels"][monitor["jobLabel"]] == "tollgate", "servicemonitor.yaml: the job is not tollgate")


def check_image():
    with open("deploy/docker/Dockerfile", encoding="utf-8") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    require("USER 65532:65532" in lines, "Dockerfile: the user is not 65532:65532")
    require(any("--locked" in line for line in lines), "Dockerfile: does not build with --locked")
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    require(all(base == "scratch" or ":" in base for base in bases), f"Dockerfile: a base image without a tag: {bases}")
    with open("Cargo.toml", encoding="utf-8") as file:
        text = file.read()
    rust = text.split('rust-version = "')[1].split('"')[0]
    version = text.split('\nversion = "')[1].split('"')[0]
    require(bases[0].startswith(f"rust:{rust}"), f"Dockerfile: builds with {bases[0]}, but Cargo.toml requires {rust}")
    images = [service["image"] for name, service in load(COMPOSE)["services"].items() if name != "redis"]
    tag = load(f"{KUBERNETES}/kustomization.yaml")["images"][0]["newTag"]
    names = set(images) | {f"tollgate:{tag}"}
    require(names == {f"tollgate:{version}"}, f"images are {sorted(names)}, but the version is {version}")
    require(f"ARG VERSION={version}" in lines, f"Dockerfile: VERSION is not {version}")


def main(arguments):
    if arguments:
        environment = {"compose": compose_environment, "kubernetes": kubernetes_environment}[arguments[0]]()
        for key, value in environment.items():
            print(f"{key}={value}")
        return 0
    check_compose()
    check_kubernetes()
    check_image()
    for line in problems:
        print(line, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
