"""Training and prediction on a Ray cluster of two machines, both on the loopback interface."""

import json
import os
import re
import time

import pytest

torch = pytest.importorskip("torch")
ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

from tests.tiny import BRIEF, documents, same, word_corpus  # noqa: E402
from treetop import Runtime, XRLinear, XRTransformer  # noqa: E402
from treetop.cli.main import run_command  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.runtime.failpoints import VARIABLE  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402

pytestmark = pytest.mark.slow
LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by the outer address of the machine
TUNED = {**BRIEF, "first_tree": "flat", "budget": "10 steps", "batch": 48, "learning_rate": 2e-3}
TUNED |= {"threads": 1, "precision": "fp32", "validation": 0.2, "trees": 1}
FAULTS = {
    "task": {"at": "rankers", "step": 0, "fault": "kill"},
    "level": {"at": "level-1", "step": 6, "process": 1, "fault": "kill"},
    "predict": {"at": "predict", "fault": "kill"},
}


class Noting(Reporter):
    """Keeps what the user is told."""

    notes = []

    def note(self, text):
        self.notes.append(text)


class Faults:
    """Faults that processes of the cluster can have, each once after `expect`."""

    def __init__(self, folder):
        self.folder, self.points = folder, []
        for name, point in FAULTS.items():
            (folder / name).touch()  # has been: such a fault does not occur again
            self.points.append({**point, "once": str(folder / name)})

    def expect(self, name):
        (self.folder / name).unlink()

    def occurred(self, name):
        return (self.folder / name).exists()


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    return Faults(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def machines(faults):
    """Two machines of two cores each, whose failure is noticed within seconds."""
    kept = dict(os.environ)
    os.environ.update({VARIABLE: json.dumps(faults.points), "RAY_USAGE_STATS_ENABLED": "0"})
    os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"  # how often workers are looked at
    noticing = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000}
    options = {"num_cpus": 2, "node_ip_address": LOOPBACK, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**options, "_system_config": {**noticing, "health_check_failure_threshold": 3}},
    )
    cluster.add_node(**options)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture
def place(machines, monkeypatch):
    """The runtime of the cluster; this process itself has no faults."""
    monkeypatch.delenv(VARIABLE)
    return Runtime(cluster=machines.address, stall_minutes=1)


def test_without_a_cluster_the_error_says_how_to_start_one():
    message = r"no Ray cluster at '127.0.0.1:1' \(Connection refused\): start one \(ray start --head\)"
    with pytest.raises(TreetopError, match=message):
        XRLinear().fit(["a", "b"], [["x"], ["y"]], runtime=Runtime(cluster="127.0.0.1:1"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ray://127.0.0.1:10001", "machines with cluster=auto (--cluster auto), for instance"),
        ("machine", "cluster 'machine' is not an address: use HOST:PORT, auto or local"),
        ("machine:port", "cluster 'machine:port' is not an address: use HOST:PORT, auto or local"),
    ],
)
def test_what_is_not_the_address_of_a_machine_is_refused(address, message):
    with pytest.raises(TreetopError, match=re.escape(message)):
        XRLinear().fit(["a", "b"], [["x"], ["y"]], runtime=Runtime(cluster=address))


def test_killed_processes_and_machines_do_not_change_a_linear_model(machines, faults, place):
    texts, labels = word_corpus()
    # Each level is searched for the shortlist of the next one.
    settings = {"tree": "4-16-L", "trees": 1, "shortlist": "both", "beam": 3}
    alone = XRLinear(**settings).fit(texts, labels, runtime=Runtime(threads=1))
    lost = machines.add_node(num_cpus=1, node_ip_address=LOOPBACK, include_dashboard=False)

    class Watching(Noting):
        notes = []

        def step(self, name, total=None):
            if name == "rankers, level 2 of 3":
                machines.remove_node(lost, allow_graceful=False)
                until = time.monotonic() + 30
                while sum(node["Alive"] for node in ray.nodes()) > 2 and time.monotonic() < until:
                    time.sleep(0.1)
            return super().step(name, total)

    faults.expect("task")
    runtime = place.changed(reporter=Watching())
    together = XRLinear(**settings).fit(texts, labels, runtime=runtime)
    assert faults.occurred("task")
    assert same(together.predict_scores(texts), alone.predict_scores(texts))
    killed, left = sorted(Watching.notes, key=lambda note: note.startswith("machine "))
    place_of_task = rf"\S+ \({re.escape(LOOPBACK)}\), process \d+"
    assert re.fullmatch(f"{place_of_task} has failed during rankers: its task was repeated", killed)
    assert left.startswith("machine ")
    assert left.endswith(f"({LOOPBACK}) has failed or left the cluster: its tasks are repeated")


def test_a_killed_rank_does_not_change_the_encoder_and_predictions_survive_a_killed_process(
    encoder, faults, place, tmp_path
):
    texts, labels = documents(120)
    asked = {"deterministic": True, "checkpoint_minutes": 1e-9}
    alone = XRTransformer(encoder=encoder, **TUNED).fit(texts, labels, runtime=Runtime(**asked))
    faults.expect("level")
    model = XRTransformer(encoder=encoder, **TUNED)
    runtime = place.changed(**asked, reporter=Noting())
    together = model.fit(texts, labels, runtime=runtime, run=tmp_path / "run")
    assert faults.occurred("level")
    place_of_rank = rf"\S+ \({re.escape(LOOPBACK)}\), process \d+"
    expected = rf"process 1 \({place_of_rank}\) of fine-tuning has failed"
    assert any(re.fullmatch(expected, note) for note in Noting.notes), Noting.notes
    assert "fine-tuning continues from the last checkpoint" in Noting.notes
    weights = [
        torch.cat([w.detach().ravel() for w in m.encoder_.parameters()]) for m in (alone, together)
    ]
    assert torch.equal(*weights)
    assert [entry["step"] for entry in together.history_] == [e["step"] for e in alone.history_]
    faults.expect("predict")
    assert same(together.predict_scores(texts, runtime=place), alone.predict_scores(texts, threads=1))
    assert faults.occurred("predict")


def test_a_frozen_encoder_and_the_command_line_give_the_same_on_a_cluster(
    encoder, machines, place, tmp_path, capsys
):
    texts, labels = documents(60)
    frozen = {"encoder": encoder, "fine_tune": False, "trees": 1, "precision": "fp32", "max_length": 16}
    alone, together = (
        XRTransformer(**frozen).fit(texts, labels, runtime=runtime)
        for runtime in (Runtime(threads=1), place)
    )
    assert same(together.predict_scores(texts, threads=1), alone.predict_scores(texts, threads=1))
    model, data, lines = tmp_path / "model", tmp_path / "data", tmp_path / "data" / "test.txt"
    together.save(model)
    data.mkdir()
    lines.write_text("\n".join(texts) + "\n")
    (data / "test.labels").write_text("\n".join("\t".join(row) for row in labels) + "\n")
    for command in (
        ["predict", str(model), str(lines)],
        ["evaluate", str(model), str(data), "--json", "--allow-training-data"],
    ):
        here, there = [
            (run_command([*command, *options]), capsys.readouterr().out)
            for options in ([], ["--cluster", machines.address])
        ]
        assert there == here
        assert here[0] == 0
