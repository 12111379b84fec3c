"""The figures in docs/howto/cluster.md."""

import json

from benchmarks import render_cluster

ABOUT = {"machine": "x86_64, 2 cores", "versions": {"torch": "2"}, "commit": "abc", "seed": 0}
STAGES = {"rankers on Ray": {"one": 8.0, "two": 4.5, "ratio": 8 / 4.5}}
ROWS = [
    {"kind": "task", "occurred": True, "equal": True},
    {"kind": "task", "occurred": True, "equal": False},
    {"kind": "disk", "occurred": True, "equal": True},
    {"kind": "disk", "occurred": False, "equal": True},
]
BYTES = {
    "XRLinear": {
        "documents": 3660,
        "labels": 2600,
        "stages": {
            "rankers": {"sent": 12_340_000, "counted": 11_000_000, "seconds": 3},
            "text features": {"sent": 2000, "counted": 0, "seconds": 1},
        },
    },
    "prediction": {"documents": 300, "stages": {"prediction": {"sent": 5e6, "counted": 4e6}}},
}


def test_what_has_been_measured_is_on_the_page(tmp_path):
    assert "No figures" in render_cluster.block(tmp_path)
    (tmp_path / "cluster.json").write_text(json.dumps({**ABOUT, "stages": STAGES}))
    (tmp_path / "faults.json").write_text(json.dumps({**ABOUT, "rows": ROWS}))
    (tmp_path / "cluster_bytes.json").write_text(json.dumps({**ABOUT, "steps": 10, "trainings": BYTES}))
    first, last = render_cluster.MARKS
    text = render_cluster.page(f"before\n{first}\nold\n{last}\nafter\n", tmp_path)
    assert text.startswith(f"before\n{first}\n\nTwo processes")
    assert text.endswith(f"{last}\nafter\n")
    assert "\n| rankers on Ray | 8.0 s | 4.5 s | 1.78 × |\n" in text
    assert "\n2 of 3 trainings\n" in text
    assert "\n| disk | 1 of 1 |\n| task | 1 of 2 |\n" in text
    assert "\n| XRLinear (3,660 documents, 2,600 labels) | rankers | 12.3 MB | 11.0 MB |\n" in text
    assert "\n| prediction (300 documents) | prediction | 5.0 MB | 4.0 MB |\n" in text
    assert "| text features |" not in text
    assert "x86_64, 2 cores, torch 2, commit abc, seed 0" in text


def test_the_page_is_rendered_from_the_results():
    text = render_cluster.PAGE.read_text("utf-8")
    assert render_cluster.page(text, render_cluster.RESULTS) == text
