"""Compares a fine-tuning step with the limits of this machine's device.

    python benchmarks/steptime.py --encoder FOLDER [--batch 256] [--tokens 256] [--nodes 4108]

Counts the operations and bytes of a step, measures both rates (by a large matrix product and a large
copy), and times the real `LevelTrainer.train_on` on random token ids of full length.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from treetop.features.encoders.attention import never_wait
from treetop.features.encoders.devices import pick_device, pick_precision
from treetop.features.encoders.sources import find_encoder
from treetop.features.encoders.subwords import Ragged
from treetop.features.encoders.transformer import Encoder
from treetop.runtime import Runtime
from treetop.runtime.progress import NotesReporter
from treetop.settings.auto import warmup_steps
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.batches import Batches
from treetop.training.finetune.head import Head
from treetop.training.finetune.network import LearningEncoder
from treetop.training.finetune.targets import Targets
from treetop.training.finetune.trainer import LevelTask, LevelTrainer
from treetop.training.finetune.weighting import weighting_of


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def ceilings(device):
    """Measure operations per second of a large bf16 product, and bytes per second of a large copy."""
    size, megabytes = (8192, 2048) if device.type == "cuda" else (1024, 128)
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    source = torch.randn(megabytes << 18, device=device)
    target = torch.empty_like(source)
    rates = []
    for work, amount in (
        (lambda: a @ a, 2 * size**3),
        (lambda: target.copy_(source), 2 * source.nbytes),
    ):
        times = []
        for _ in range(8):
            wait(device)
            started = time.perf_counter()
            for _ in range(5):
                work()
            wait(device)
            times.append((time.perf_counter() - started) / 5)
        rates.append(amount / float(np.median(times)))
    return rates


def lower_bound(encoder, batch, tokens, nodes, flops, bandwidth):
    """Estimate the minimum duration of a step: operations over their rate, plus bytes over bandwidth.

    Operations: 6 per weight and token (forward and backward), plus the products of attention. Bytes:
    the activations that the backward pass needs are written and read once (bf16), and the weights and
    the state of Adam are read and written once.
    """
    config = encoder.model.config
    width, layers = config.hidden_size, config.num_hidden_layers
    inner = config.intermediate_size
    per_layer = 4 * width * width + 2 * width * inner
    rows = batch * tokens
    operations = (
        6 * rows * layers * per_layer + 12 * rows * tokens * width * layers + 6 * batch * width * nodes
    )
    # per token and layer: input, q, k, v, output of attention and its projection, norm, inner twice
    activations = 2 * rows * layers * (8 * width + 2 * inner)
    parameters = sum(weight.numel() for weight in encoder.parameters()) + nodes * width
    moved = 2 * activations + 28 * parameters
    return {
        "operations": operations,
        "bytes": moved,
        "compute_ms": 1e3 * operations / flops,
        "memory_ms": 1e3 * moved / bandwidth,
    }


def make_trainer(encoder, batch, tokens, nodes, steps, settings, runtime):
    random = np.random.default_rng(0)
    documents = 8 * batch
    ids = random.integers(1000, encoder.model.config.vocab_size, documents * tokens, dtype=np.int32)
    ragged = Ragged(ids, np.arange(documents + 1, dtype=np.int64) * tokens)
    learning = LearningEncoder(encoder, ragged, runtime)
    relevance = sp.random(documents, nodes, 5 / nodes, "csr", np.float32, random)
    clusters = sp.csr_matrix(
        sp.random(documents, 256, 15 / 256, "csr", np.float32, random) != 0, dtype=np.float32
    )
    child_ptr = np.arange(257) * nodes // 256
    head = Head(nodes, encoder.width, settings.dropout).to(learning.device)
    targets = Targets(relevance, clusters, child_ptr, None, learning.device)
    weighting = weighting_of(settings, settings.tune_weighting)
    (rising,) = warmup_steps(settings.warmup, [steps])
    task = LevelTask(1, targets, Batches(ragged.lengths, batch, 0), steps, rising, weighting)
    return LevelTrainer(learning, head, task, settings, NotesReporter())


def train(trainer, steps):
    for _ in range(steps):
        trainer.train_on(trainer.task.batches[trainer.step])


def time_steps(trainer, device, steps):
    """Return the median duration of a step in ms, with steps queued as in training."""
    trainer.encoder.train()
    train(trainer, 5)
    times = []
    for _ in range(5):
        wait(device)
        started = time.perf_counter()
        train(trainer, steps)
        wait(device)
        times.append(1e3 * (time.perf_counter() - started) / steps)
    return float(np.median(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--nodes", type=int, default=4108)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--plain", action="store_true", help="PyTorch's own layers, no CUDA graphs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = pick_device(given.device)
    settings = replace(TransformerSettings(), dropout=given.dropout)
    encoder = Encoder(find_encoder(given.encoder), "mean", given.tokens, given.dropout).to(device)
    precision = pick_precision("auto", device)
    never_wait(encoder.model)
    runtime = Runtime(device=given.device, cuda_graphs=not given.plain, fused_layers=not given.plain)
    trainer = make_trainer(encoder, given.batch, given.tokens, given.nodes, 10_000, settings, runtime)
    if given.compile:
        started = time.perf_counter()
        encoder.model.compile(dynamic=False)
        train(trainer, 1)
        wait(device)
        print(f"compiled in {time.perf_counter() - started:.1f} s")
    measured = time_steps(trainer, device, given.steps)
    flops, bandwidth = ceilings(device)
    counted = lower_bound(encoder, given.batch, given.tokens, given.nodes, flops, bandwidth)
    least = counted["compute_ms"] + counted["memory_ms"]
    result = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "precision": str(precision),
        "compiled": given.compile,
        "batch": given.batch,
        "tokens": given.tokens,
        "nodes": given.nodes,
        "dropout": given.dropout,
        "teraflops": flops / 1e12,
        "terabytes_per_second": bandwidth / 1e12,
        **counted,
        "floor_ms": least,
        "step_ms": measured,
        "times_floor": measured / least,
    }
    if device.type == "cuda":
        result["gpu_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
    print(json.dumps(result, indent=2))
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")
    if given.profile:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            train(trainer, 3)
            wait(device)
        key = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
        print(prof.key_averages().table(sort_by=key, row_limit=28, max_name_column_width=70))


if __name__ == "__main__":
    main()
