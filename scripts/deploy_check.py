"""What deploy/ must say so that a service runs with no more rights than it needs. Without an argument: checks it.
`compose` or `kubernetes`: prints the environment that a node has there."""

import os
import sys

import yaml

COMPOSE = "deploy/docker/compose.yaml"
KUBERNETES = "deploy/kubernetes"

wrong = []


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def want(holds, what):
    if not holds:
        wrong.append(what)


def compose_environment():
    return load(COMPOSE)["services"]["node-1"]["environment"]


def container():
    return load(f"{KUBERNETES}/deployment.yaml")["spec"]["template"]["spec"]["containers"][0]


def kubernetes_environment():
    # What the cluster fills in is the name of a pod.
    return {one["name"]: one.get("value", "tollgate-5d9c7b6f4-x2x7p") for one in container()["env"]}


def check_compose():
    compose = load(COMPOSE)
    for name, service in compose["services"].items():
        where = f"{COMPOSE}: {name}"
        want(service.get("read_only") is True, f"{where} can write to its root")
        want(service.get("cap_drop") == ["ALL"], f"{where} keeps capabilities")
        want("no-new-privileges:true" in service.get("security_opt", []), f"{where} may gain privileges")
        want(service.get("mem_limit"), f"{where} may take all memory")
        want(":" in service["image"], f"{where} has an image without a tag")
        for port in service.get("ports", []):
            want(port.startswith("127.0.0.1:"), f"{where} listens beyond this machine: {port}")
        for kind in ["secrets", "configs"]:
            for used in service.get(kind, []):
                source = used if isinstance(used, str) else used["source"]
                want(source in compose[kind], f"{where} uses {source}, which is not among {kind}")
        for key, value in service.get("environment", {}).items():
            secret = value.startswith("/run/secrets/") and value.removeprefix("/run/secrets/")
            want(not secret or secret in service["secrets"], f"{where}: {key} is a file that is not mounted")
            want(not key.endswith(("_TOKEN", "_REDIS")), f"{where}: {key} is a secret in the environment")
    for config in compose["configs"].values():
        path = os.path.join("deploy/docker", config["file"])
        want(os.path.exists(path), f"{COMPOSE}: {path} is not there")
    ids = [service["environment"]["TOLLGATE_NODE_ID"] for service in compose["services"].values() if "environment" in service]
    want(len(ids) == 2 and len(set(ids)) == 2, f"{COMPOSE}: nodes do not have names of their own: {ids}")


def check_kubernetes():
    kustomization = load(f"{KUBERNETES}/kustomization.yaml")
    for resource in kustomization["resources"] + kustomization["configMapGenerator"][0]["files"]:
        want(os.path.exists(f"{KUBERNETES}/{resource}"), f"{KUBERNETES}: {resource} is not there")
    want("secret.example.yaml" not in kustomization["resources"], f"{KUBERNETES}: example secrets are applied")
    deployment = load(f"{KUBERNETES}/deployment.yaml")["spec"]
    pod, node = deployment["template"]["spec"], container()
    where = f"{KUBERNETES}/deployment.yaml"
    want(pod["securityContext"]["runAsNonRoot"] is True, f"{where}: may be root")
    want(pod["securityContext"]["runAsUser"] == 65532, f"{where}: is not the image's user")
    want(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", f"{where}: no seccomp")
    want(pod["automountServiceAccountToken"] is False, f"{where}: has a token of the cluster")
    own = node["securityContext"]
    want(own["readOnlyRootFilesystem"] is True, f"{where}: can write to its root")
    want(own["allowPrivilegeEscalation"] is False, f"{where}: may gain privileges")
    want(own["capabilities"]["drop"] == ["ALL"], f"{where}: keeps capabilities")
    probes = {probe: node[f"{probe}Probe"]["httpGet"]["path"] for probe in ["startup", "liveness", "readiness"]}
    want(probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}, f"{where}: probes {probes}")
    environment = kubernetes_environment()
    drain = int(environment["TOLLGATE_DRAIN_MS"]) / 1000
    want(pod["terminationGracePeriodSeconds"] > drain + 30, f"{where}: it is killed before it has drained")
    want(environment["TOLLGATE_ADMIN"].startswith("127.0.0.1:"), f"{where}: operators' port is open")
    mounts = {mount["mountPath"]: mount for mount in node["volumeMounts"]}
    for key, value in environment.items():
        if key.endswith("_FILE") or key == "TOLLGATE_POLICY":
            want(os.path.dirname(value) in mounts, f"{where}: {key}: nothing is mounted at {value}")
    want(not any("subPath" in mount for mount in mounts.values()), f"{where}: a subPath never changes")
    secret = load(f"{KUBERNETES}/secret.example.yaml")
    for value in environment.values():
        if value.startswith("/run/secrets/tollgate/"):
            want(os.path.basename(value) in secret["stringData"], f"secret.example.yaml lacks {os.path.basename(value)}")
    labels = deployment["template"]["metadata"]["labels"].items()
    for name, path in [
        ("service.yaml", ["selector"]),
        ("poddisruptionbudget.yaml", ["selector", "matchLabels"]),
        ("networkpolicy.yaml", ["podSelector", "matchLabels"]),
    ]:
        selector = load(f"{KUBERNETES}/{name}")["spec"]
        for key in path:
            selector = selector[key]
        want(selector.items() <= labels, f"{KUBERNETES}/{name} selects none of our pods")
    monitor = load(f"{KUBERNETES}/servicemonitor.yaml")["spec"]
    service = load(f"{KUBERNETES}/service.yaml")
    want(monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), "servicemonitor.yaml selects nothing")
    ports = {port["name"] for port in service["spec"]["ports"]}
    want({end["port"] for end in monitor["endpoints"]} <= ports, "servicemonitor.yaml: no such port")
    # A job that is called otherwise matches no rule.
    want(service["metadata"]["labels"][monitor["jobLabel"]] == "tollgate", "servicemonitor.yaml: the job is not tollgate")


def check_image():
    with open("deploy/docker/Dockerfile", encoding="utf-8") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    want("USER 65532:65532" in lines, "Dockerfile: the user is not a number, or root")
    want(any("--locked" in line for line in lines), "Dockerfile: builds without the lockfile")
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    want(all(base == "scratch" or ":" in base for base in bases), f"Dockerfile: a base without a tag: {bases}")
    with open("Cargo.toml", encoding="utf-8") as file:
        text = file.read()
    rust = text.split('rust-version = "')[1].split('"')[0]
    version = text.split('\nversion = "')[1].split('"')[0]
    want(bases[0].startswith(f"rust:{rust}"), f"Dockerfile: built with {bases[0]}, the manifest wants {rust}")
    images = [service["image"] for name, service in load(COMPOSE)["services"].items() if name != "redis"]
    tag = load(f"{KUBERNETES}/kustomization.yaml")["images"][0]["newTag"]
    told = set(images) | {f"tollgate:{tag}"}
    want(told == {f"tollgate:{version}"}, f"images are {sorted(told)}, the version is {version}")
    want(f"ARG VERSION={version}" in lines, f"Dockerfile: another version than {version}")


def main(arguments):
    if arguments:
        environment = {"compose": compose_environment, "kubernetes": kubernetes_environment}[arguments[0]]()
        for key, value in environment.items():
            print(f"{key}={value}")
        return 0
    check_compose()
    check_kubernetes()
    check_image()
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
