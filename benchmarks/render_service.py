"""docs/service.md from benchmarks/results/serve.json."""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent


def rows(linear, minilm):
    """(measure, figure) of each bar."""
    rate, kill, fuzz, memory = (linear[name] for name in ("rate", "kill", "fuzz", "memory"))
    swaps, slow, over = linear["swaps"], minilm["rate"], minilm["overload"]
    return [
        (
            f"XRLinear (eurlex57k), one text a request, {rate['connections']} connections",
            f"{rate['rate']:,.0f} requests/s, p50 {rate['p50_ms']:.0f} ms, "
            f"p99 {rate['p99_ms']:.0f} ms, {rate['failed']} failed",
        ),
        (
            "XRTransformer (MiniLM), texts of 128 tokens, 64 connections",
            f"{slow['rate']:.0f} requests/s, p99 {slow['p99_ms'] / 1e3:.2f} s, {slow['failed']} failed",
        ),
        (
            f"the same, {over['asked_a_second']:.0f} requests/s asked for",
            f"{over['good_a_second']:.0f} a second answered, p99 {over['good_p99_ms'] / 1e3:.2f} s; "
            f"{over['refused']:,} refused with 503 after {over['refused_p50_ms']:.1f} ms (p50); "
            f"{over['other']} other",
        ),
        (
            f"{swaps['swaps']} new models during load (XRLinear)",
            f"{swaps['requests']:,} requests, {swaps['failed']} failed, p99 {swaps['p99_ms']:.0f} ms",
        ),
        (
            f"{kill['kills']} times a worker killed during load",
            f"the next one works after {max(kill['back_seconds']):.2f} s at most; {kill['failed']} "
            f"requests lost, {kill['connections_of_the_killed']} connections were at the killed ones",
        ),
        (
            f"{fuzz['requests']:,} malformed, oversized, slow or cut-off requests",
            f"no worker lost: {fuzz['workers_survived']}; memory {100 * fuzz['rss_growth']:+.1f} %; "
            f"good requests answered after it: {fuzz['good_after']}",
        ),
        (
            "memory that a second worker adds",
            f"{memory['added_mb']:.0f} MB, {100 * memory['added_share_of_model']:.0f} % of the model's "
            f"{memory['model_mb']:.0f} MB",
        ),
    ]


def main():
    path = ROOT / "benchmarks" / "results" / "serve.json"
    if not path.is_file():
        return
    made = json.loads(path.read_text("utf-8"))
    machine = made["linear"]["machine"]
    lines = [
        "# The service, measured",
        "",
        "Written by `make docs` from `benchmarks/results/serve.json`; do not edit.",
        "`benchmarks/serve/bars.py` says how to run it.",
        "",
        f"{machine['cores']} cores, which server and load share, loopback, "
        f"{machine['seconds']} s each, Python {machine['python']}.",
        "",
        "| measure | figure |",
        "| --- | --- |",
        *(f"| {name} | {figure} |" for name, figure in rows(made["linear"], made["minilm"])),
        "",
    ]
    (ROOT / "docs" / "service.md").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
