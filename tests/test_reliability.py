"""docs/reliability.md is generated from whatever has been measured."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def renderer():
    path = ROOT / "benchmarks" / "render_reliability.py"
    spec = importlib.util.spec_from_file_location("render_reliability", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURED = {
    "equality": {
        "data": {
            "cooking": {
                "texts": 3000,
                "trees": 3,
                "ways": {
                    "fitted and loaded": {"comparisons": 3000, "differences": 0},
                    "http": {"comparisons": 3000, "differences": 1},
                },
            },
            "eurlex57k": {
                "texts": 2000,
                "trees": 1,
                "ways": {"http": {"comparisons": 2000, "differences": 0}},
            },
        }
    },
    "fuzz_data": {
        "mutants": 2000,
        "read": 1200,
        "refused": 797,
        "crashes": 1,
        "hangs": 0,
        "others": ["1-a.csv: crash 11", "2-b.csv: two lines", "3-c.csv: two lines"],
    },
    "kills": {"kills": 300, "completed": 90, "faults": 0, "scenarios": {"train": {}, "save": {}}},
    "faults": {
        "commit": "abc",
        "rows": [
            {"kind": "task", "occurred": True, "equal": True, "resumed": 0},
            {"kind": "disk", "occurred": True, "equal": True, "resumed": 1},
            {"kind": "disk", "occurred": False, "equal": True, "resumed": 0},
        ],
    },
    "swaps": {"loads": 10_000, "swaps": 4000, "mixed": 0, "results": {}, "left behind": []},
    "fuzz_folder": {
        "mutants": 20_000,
        "total": {
            "crash": 0,
            "hang": 0,
            "memory": 0,
            "error": 2,
            "refused": 15_000,
            "right": 4998,
        },
    },
    "load_speed": {
        "repeats": 5,
        "gigabytes": 5.02,
        "loads": {"1 threads": {"median": 2, "most": 3}, "2 threads": {"median": 1.256, "most": 1.3}},
    },
    "commits": {
        "machine": "x86_64, 2 cores",
        "old": "c894825",
        "new": "1234567",
        "cooking, linear": {
            "runs": 5,
            "commit": "89abcde",
            "training, s": {"old": 2.0, "new": 1.5, "ratio": 0.75},
            "prediction, ms per document": {"old": 0.1, "new": 0.09, "ratio": 0.9},
            "one text, ms": {"old": 1.0, "new": 0.8, "ratio": 0.8},
        },
    },
    "overload": {
        "overload": {
            "factor": 4,
            "share_of_peak": 0.912,
            "rounds": [{"peak_per_second": 690.4}, {"peak_per_second": 700.0}],
        },
        "overload_linear": {
            "factor": 4,
            "share_of_peak": 0.85,
            "model": "XRLinear",
            "rounds": [
                {
                    "peak_per_second": 4000,
                    "good": 100,
                    "refused": 200,
                    "other": 0,
                    "unsent": 100,
                    "generator_share_of_its_core": {"at_peak": 0.1, "at_overload": 0.26},
                }
            ],
        },
        "reload": {
            "crash": {"reloads": 8, "requests": 1000, "lost": 0},
            "hang": {"reloads": 2, "requests": 2000, "lost": 0},
        },
    },
}


def test_the_table_contains_what_has_been_measured(renderer, tmp_path):
    for name, found in MEASURED.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    assert renderer.table(tmp_path).splitlines()[2:] == [
        "| 8,000 comparisons of answers to the same question, asked in different ways (5,000 texts of "
        "2 data sets) | 1 difference |",
        "| 2,000 mutated data files | 1 crash, 0 hangs, 2 other faults; 1,200 read, 797 refused "
        "in one line |",
        "| 300 processes killed at random times, in 2 scenarios (train; save) | 0 faults (a wrong "
        "model, a lost file or a leftover) |",
        "| 2 random faults of 2 kinds in training on several processes and machines | 2 models equal, "
        "bit for bit, to the undisturbed one, 1 of the trainings without being resumed (commit abc) |",
        "| 10,000 loads while another process replaced the model 4,000 times | 0 mixed models, 0 files "
        "left behind |",
        "| 20,000 mutated model folders | 0 crashes, 0 hangs, 0 with too much memory, 2 other errors; "
        "15,000 refused in one line, 4,998 right |",
        "| Opening a model of 5.0 GB whose files are in memory, with every index in it checked "
        "(2 threads) | 1.26 s (median of 5, at most 1.30 s) |",
        "| Time as a share of that of c894825, whose forests ranked only the labels that their trees "
        "had found (median, interleaved, x86_64, 2 cores) | cooking, linear (5 runs of 89abcde): "
        "training 0.75, batch prediction 0.90, one text 0.80 |",
        "| 4 times as many requests as the server can answer (700/s) | 91% of the peak rate "
        "answered with labels |",
        "| 4 times as many requests as the server can answer (4,000/s, XRLinear) | 85% of the peak "
        "rate answered with labels; the sender took 26% of a core of its own, and 25% of the requests "
        "had to wait there until the end |",
        "| 10 reloads of models that crash or hang, under load | 0 of 3,000 requests lost |",
    ]


def test_measurements_may_be_missing(renderer, tmp_path):
    assert renderer.table(tmp_path) == "No counts have been recorded for this version yet."
    (tmp_path / "swaps.json").write_text(json.dumps(MEASURED["swaps"]))
    assert len(renderer.table(tmp_path).splitlines()) == 3


def test_recorded_measurements_can_be_rendered(renderer):
    rows = renderer.table(renderer.RESULTS).splitlines()[2:]
    assert any("data files" in row for row in rows)


def test_the_page_is_the_generated_one(renderer):
    """Apart from the counts, which `make docs` brings up to date."""
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    before, after = renderer.PAGE.split("{table}")
    assert page.startswith(before)
    assert page.endswith(after)
