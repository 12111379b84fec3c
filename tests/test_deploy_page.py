"""The deploy page agrees with the Dockerfile, the server's options and its metrics."""

import json
import re
from pathlib import Path

import pytest

from tests.dockerfile import parse
from treetop.fields import documented_fields
from treetop.serve.options import ServiceOptions

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
STEPS = parse((ROOT / "Dockerfile").read_text("utf-8"))


def fenced(language):
    """The code of the blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def instruction(name):
    return next(step for step in reversed(STEPS) if step.name == name)


def test_the_table_of_build_arguments_is_that_of_the_dockerfile():
    table = PAGE.split("| build argument |")[1].split("\n\n")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", table, re.MULTILINE))
    arguments = [step.rest.split("=", 1) for step in STEPS if step.name == "ARG"]
    assert shown == dict(arguments)


def test_the_table_of_limits_has_the_defaults_of_the_server():
    fields = documented_fields(ServiceOptions)
    rows = re.findall(r"^\| `--([\w-]+)` \| ([\d,.]+)", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for option, default in rows:
        assert float(default.replace(",", "")) == fields[option.replace("-", "_")].default, option


def test_every_metric_is_on_the_page():
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "src/treetop/serve").glob("*.py"))
    metrics = re.findall(r'\b(Counter|Gauge|Histogram)\(\s*"(treetop_\w+)"', sources)
    assert len(metrics) == 6
    shown = set(re.findall(r"^\| `(treetop_\w+)` \|", PAGE, re.MULTILINE))
    assert shown == {f"{name}_total" if kind == "Counter" else name for kind, name in metrics}


def test_the_kubernetes_deployment_fits_the_image():
    yaml = pytest.importorskip("yaml")
    (text,) = [code for code in fenced("yaml") if "kind: Deployment" in code]
    deployment, service = yaml.safe_load_all(text)
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    port = int(instruction("EXPOSE").rest)
    assert container["ports"] == [{"containerPort": port}]
    assert service["spec"]["ports"][0]["targetPort"] == port
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == port
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    model = json.loads(instruction("CMD").rest)[1]
    assert mounted == {str(Path(model).parent), "/tmp"}
    assert {volume["name"] for volume in spec["volumes"]} == {"models", "tmp"}


def test_the_server_may_finish_before_it_is_killed():
    """The supervisor waits for the slowest body, the slowest request and ten seconds."""
    options = ServiceOptions(model=Path("model"))
    grace = options.body_seconds + options.timeout + 10
    waits = re.findall(r"(?:TimeoutStopSec=|terminationGracePeriodSeconds: )(\d+)", PAGE)
    assert [int(wait) >= grace for wait in waits] == [True, True]
    compose = (ROOT / "compose.yaml").read_text("utf-8")
    assert int(re.search(r"stop_grace_period: (\d+)s", compose)[1]) >= grace
