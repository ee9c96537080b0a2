"""See conformance/chart/check."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import helm_python as helm
import kubernetes_validate
import yaml

import settings

CHART = pathlib.Path("helm/oncelog")
GOLDEN = pathlib.Path("conformance/chart/golden")
OLDEST, NEWEST = "1.28", "1.37"
UPDATE = sys.argv[1:] == ["--update"]
# Fields the chart may use of the operator's kinds, whose schemas are not at hand here.
SELECTOR = {"namespaceSelector": {"matchNames": None}, "selector": {"matchLabels": None}, "jobLabel": None}
ENDPOINT = dict.fromkeys(["port", "path", "scheme", "interval", "scrapeTimeout", "relabelings", "metricRelabelings"])
RULE = dict.fromkeys(["alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"])
OPERATOR = {
    "ServiceMonitor": SELECTOR | {"endpoints": ENDPOINT},
    "PodMonitor": SELECTOR | {"podMetricsEndpoints": ENDPOINT},
    "GrafanaDashboard": {"instanceSelector": {"matchLabels": None}, "allowCrossNamespaceImport": None, "folder": None, "json": None},
    "PrometheusRule": {"groups": {"name": None, "interval": None, "rules": RULE}},
}
IMMUTABLE = ["serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"]
problems = []
counts = {}


def wrong(text):
    problems.append(text)
    print(f"WRONG {text}")


def shown(what, number):
    counts[what] = number
    print(f"{what}: {number}")


def values(path):
    return yaml.safe_load(path.read_text()) or {}


def render(chart, given, name="orders", namespace="shop"):
    """The objects, by template."""
    rendered = chart.render(given, name=name, namespace=namespace)
    texts = {path.split("/templates/")[1]: text for path, text in sorted(rendered.items())}
    notes = texts.pop("NOTES.txt", "")
    return {path: [d for d in yaml.safe_load_all(text) if d] for path, text in texts.items()}, notes


def flat(objects):
    return [document for documents in objects.values() for document in documents]


def update(path, text, what):
    """A generated file: written, or compared."""
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        wrong(f"{path} is not current ({what}): conformance/chart/check --update")


def generated():
    """The chart cannot reach outside its own directory, so what it ships of the rest of the tree is a copy."""
    files = 0
    for source, pattern in [("alerts", "*.yml"), ("dashboards", "*.json")]:
        target = CHART / "files" / source
        wanted = {p.name: p for p in pathlib.Path(source).glob(pattern) if ".test." not in p.name}
        for name, path in wanted.items():
            update(target / name, path.read_text(), f"a copy of {path}")
            files += 1
        for path in target.glob("*"):
            if path.name not in wanted and UPDATE:
                path.unlink()
            elif path.name not in wanted:
                wrong(f"{path} has no original in {source}/")
    path = CHART / "values.schema.json"
    whole = json.loads(path.read_text())
    whole["properties"]["config"] = settings.schema()
    update(path, json.dumps(whole, indent=2) + "\n", f"its config is made from {settings.SOURCE}")
    shown("copies current", files)


def keys_known(where, given, allowed):
    if isinstance(given, list):
        for item in given:
            keys_known(where, item, allowed)
    elif isinstance(given, dict) and allowed is not None:
        for key in given:
            if key not in allowed:
                wrong(f"{where}: {key} is no field of it")
            else:
                keys_known(f"{where}.{key}", given[key], allowed[key])


def valid(where, document):
    kind = document["kind"]
    if kind in OPERATOR:
        keys_known(f"{where} {kind}.spec", document["spec"], OPERATOR[kind])
        return
    for version in (OLDEST, NEWEST):
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            wrong(f"{where} {kind} {document['metadata']['name']}, Kubernetes {version}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            wrong(f"{where}: {error.message}")


def matches(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def restricted(where, pod):
    """What the Pod security standard of that name asks for, of our own container at least."""
    context, container = pod["securityContext"], pod["containers"][0]["securityContext"]
    asked = [
        context.get("runAsNonRoot") is True,
        isinstance(context.get("runAsUser"), int) and context["runAsUser"] > 0,
        context.get("seccompProfile") == {"type": "RuntimeDefault"},
        container.get("allowPrivilegeEscalation") is False,
        container.get("readOnlyRootFilesystem") is True,
        container.get("capabilities") == {"drop": ["ALL"]},
        pod.get("automountServiceAccountToken") is False,
        pod.get("enableServiceLinks") is False,
    ]
    if not all(asked):
        wrong(f"{where}: not restricted: {asked}")


def startup_budget(where, probe):
    """A long recovery is not ended by its probes, which would begin it anew for ever."""
    budget = probe.get("initialDelaySeconds", 0) + probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
    if budget < 600:
        wrong(f"{where}: a start that takes more than {budget} s is killed")


def together(where, objects):
    """What the objects must be to each other."""
    documents = flat(objects)
    ids = [(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in documents]
    if len(set(ids)) != len(ids):
        wrong(f"{where}: a name is used twice: {ids}")
    workload = next(d for d in documents if d["kind"] == "StatefulSet")
    template = workload["spec"]["template"]
    labels, pod = template["metadata"]["labels"], template["spec"]
    restricted(where, pod)
    ports = {port["name"] for port in pod["containers"][0]["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if pod["containers"][0][probe]["httpGet"]["port"] not in ports:
            wrong(f"{where}: {probe} asks a port that is not there")
    startup_budget(where, pod["containers"][0]["startupProbe"])
    services = [d for d in documents if d["kind"] == "Service"]
    for service in services:
        lost = [p for p in service["spec"]["ports"] if p["targetPort"] not in ports]
        if lost or not matches(service["spec"]["selector"], labels):
            wrong(f"{where}: Service {service['metadata']['name']} does not lead to the broker")
        for test in (d for d in documents if d["kind"] == "Pod"):
            if matches(service["spec"]["selector"], test["metadata"]["labels"]):
                wrong(f"{where}: Service {service['metadata']['name']} leads to the test's Pod")
    for test in (d for d in documents if d["kind"] == "Pod"):
        restricted(where, test["spec"])
    headless = next(s for s in services if s["metadata"]["name"] == workload["spec"]["serviceName"])
    if headless["spec"].get("clusterIP") != "None" or not headless["spec"].get("publishNotReadyAddresses"):
        wrong(f"{where}: the headless Service hides a broker that recovers")
    for monitor in (d for d in documents if d["kind"] == "ServiceMonitor"):
        chosen = [s for s in services if matches(monitor["spec"]["selector"]["matchLabels"], s["metadata"]["labels"])]
        named = {port["name"] for service in chosen for port in service["spec"]["ports"]}
        if len(chosen) != 1 or monitor["spec"]["endpoints"][0]["port"] not in named:
            wrong(f"{where}: the ServiceMonitor chooses {[s['metadata']['name'] for s in chosen]}")
    for monitor in (d for d in documents if d["kind"] == "PodMonitor"):
        if not matches(monitor["spec"]["selector"]["matchLabels"], labels):
            wrong(f"{where}: the PodMonitor does not choose the broker")
    return {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}


def taken(where, env, binary):
    """Does the broker take what is rendered?"""
    given = {name: value for name, value in env.items() if value is not None}
    given |= {"POD_NAME": "orders-oncelog-0", "POD_IP": "10.1.2.3", "NODE_IP": "10.9.8.7"}
    said = subprocess.run([binary, "config"], env=given, capture_output=True, text=True, timeout=30, cwd=tempfile.gettempdir())
    if said.returncode:
        wrong(f"{where}: the broker refuses the settings: {said.stderr.strip()}")


def lint():
    runs = 0
    for path in sorted(CHART.glob("ci/*-values.yaml")):
        for version in (OLDEST, NEWEST):
            report = helm.lint(CHART, values(path), strict=True, kube_version=f"v{version}.0")
            runs += 1
            for message in report["messages"]:
                if message["severity"] >= 2:
                    wrong(f"lint of {path.name}: {message['path']}: {message['error']}")
            for error in report["errors"]:
                wrong(f"lint of {path.name}: {error}")
    shown("lint, strict", runs)


def rendered(chart):
    objects = asked = 0
    binary = os.environ.get("ONCELOG_BIN", "target/debug/oncelog")
    binary = str(pathlib.Path(binary).resolve()) if pathlib.Path(binary).exists() else None
    for path in sorted(CHART.glob("ci/*-values.yaml")):
        name = path.name.removesuffix("-values.yaml")
        templates, notes = render(chart, values(path))
        for template, documents in templates.items():
            for document in documents:
                valid(f"{name}, {template}:", document)
                objects += 1
        env = together(name, templates)
        if binary:
            taken(name, env, binary)
            asked += 1
        text = "".join(f"# {t}\n" + yaml.safe_dump_all(map(digest, d), width=120) for t, d in templates.items() if d)
        update(GOLDEN / f"{name}.yaml", text + commented(notes), "golden")
    shown(f"objects valid in Kubernetes {OLDEST} and {NEWEST}", objects)
    shown("environments taken by the broker", asked)


def commented(notes):
    return "# NOTES.txt\n" + "".join(f"# {line}".rstrip() + "\n" for line in notes.strip().splitlines())


def digest(document):
    """Dashboards and alerts have checks of their own: here it is enough that they are there."""
    if document["kind"] == "PrometheusRule":
        groups = [group if group["name"] == "own" else group["name"] for group in document["spec"]["groups"]]
        return document | {"spec": {"groups": groups}}
    if "grafana_dashboard" in document["metadata"].get("labels", {}):
        return document | {"data": sorted(document["data"])}
    return document


REFUSED = [
    ({"replicaCount": 3}, "replicaCount"),
    ({"replicas": 2}, "replicas"),
    ({"persistance": {"size": "1Gi"}}, "persistance"),
    ({"config": {"durabilty": "strict"}}, "durabilty"),
    ({"config": {"durability": "lax"}}, "durability"),
    ({"config": {"data_dir": "/elsewhere"}}, "data_dir"),
    ({"config": {"topics": {"default_partitions": 0}}}, "default_partitions"),
    ({"listeners": {"internal": {"advertised": "0.0.0.0:9092"}}}, "advertised"),
    ({"listeners": {"external": {"enabled": True}}}, "set listeners.external.advertised"),
    ({"listeners": {"external": {"enabled": True, "service": {"type": "NodePort"}}}}, "service.nodePort"),
    ({"metrics": {"serviceMonitor": {"scheme": "HTTP"}}}, "scheme"),
    ({"persistence": {"size": "ten gigabytes"}}, "size"),
    ({"terminationGracePeriodSeconds": 0}, "terminationGracePeriodSeconds"),
    ({"networkPolicy": {"enabled": "yes"}}, "enabled"),
]


def refused(chart):
    for given, because in REFUSED:
        try:
            chart.validate_schema(given)
            chart.render(given, name="orders", namespace="shop")
            wrong(f"taken, but must be refused: {given}")
        except helm.HelmError as error:
            if because not in str(error):
                wrong(f"{given} is refused without naming {because}: {error}")
    shown("values refused", len(REFUSED))


def upgrade(chart):
    """A newer chart with other settings: the cluster refuses a StatefulSet whose immutable fields differ."""
    with tempfile.TemporaryDirectory() as temporary:
        newer = pathlib.Path(temporary) / "oncelog"
        shutil.copytree(CHART, newer)
        meta = newer / "Chart.yaml"
        meta.write_text(re.sub(r"(?m)^(version|appVersion): .*$", r"\1: 9.8.7", meta.read_text()))
        with helm.Chart.load(newer) as later:
            changed = {"config": {"durability": "relaxed"}, "resources": {}, "podLabels": {"a": "b"}, "commonLabels": {"c": "d"}}
            before, after = (
                next(d for d in flat(render(c, v)[0]) if d["kind"] == "StatefulSet")
                for c, v in [(chart, {}), (later, changed)]
            )
            selectors = [
                {s["metadata"]["name"]: s["spec"]["selector"] for s in flat(render(c, {})[0]) if s["kind"] == "Service"}
                for c in (chart, later)
            ]
    for field in IMMUTABLE:
        if before["spec"][field] != after["spec"][field]:
            wrong(f"an upgrade changes {field}, which is immutable")
    if selectors[0] != selectors[1]:
        wrong("an upgrade changes a Service's selector")
    image = after["spec"]["template"]["spec"]["containers"][0]["image"]
    if before == after or not image.endswith(":9.8.7"):
        wrong("the upgrade has changed nothing, so this has shown nothing")
    shown("immutable fields kept", len(IMMUTABLE))


def main():
    if sys.argv[1:] not in ([], ["--update"]):
        sys.exit("usage: conformance/chart/check [--update]")
    generated()
    with helm.Chart.load(CHART) as chart:
        lint()
        rendered(chart)
        refused(chart)
        upgrade(chart)
        # As a part of another chart, under the longest name that Helm takes.
        for document in flat(render(chart, {"global": {"a": 1}, "enabled": True}, name="a" * 53)[0]):
            if len(document["metadata"]["name"]) > 61:
                wrong(f"{document['metadata']['name']} is too long for a Service or the Pod of a StatefulSet")
    print(f"chart {'FAILED' if problems else 'passed'}: {sum(counts.values())} shown, {len(problems)} wrong")
    sys.exit(1 if problems else 0)


main()
