"""Helpers of all workers, which run in different environments: imports only numpy and scipy."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

THREADS = 2
TOP = 10
SINGLE_QUERIES = 300


def arguments():
    """Return stage, folder of the prepared data and options from the command line."""
    options = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    return sys.argv[1], Path(sys.argv[2]), options


def load(folder, name):
    return sp.csr_matrix(sp.load_npz(folder / f"{name}.npz"), dtype=np.float32)


def texts(folder, split):
    return (folder / f"{split}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def peak_mb():
    """Return the peak resident memory of this process; getrusage would include the parent's."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def clocks():
    """Return the wall time and the CPU time of this process and those that it waited for, in s."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


class Clock:
    """Measures the wall and CPU time of named steps in seconds."""

    def __init__(self):
        self.seconds, self.cpu_seconds = {}, {}

    def __call__(self, name, work, *args, **kwargs):
        started = clocks()
        result = work(*args, **kwargs)
        self.seconds[name], self.cpu_seconds[name] = (clocks() - started).tolist()
        return result


def median_single(predict, rows):
    """Return the median duration of single queries in ms."""
    taken = []
    for row in rows:
        started = time.perf_counter()
        predict(row)
        taken.append(time.perf_counter() - started)
    return float(np.median(taken) * 1000)


def save_predictions(folder, worker, rows, labels):
    """Save the top labels of each document as a matrix whose values decrease with the rank."""
    indptr = np.append(0, np.cumsum([len(row) for row in rows]))
    indices = np.array([label for row in rows for label in row], np.int64)
    ranks = np.concatenate([np.arange(len(row)) for row in rows]) if len(rows) else []
    values = 1.0 / (1.0 + np.asarray(ranks, np.float64))
    matrix = sp.csr_matrix((values, indices, indptr), shape=(len(rows), labels))
    sp.save_npz(folder / f"predictions.{worker}.npz", matrix)


def ordered_rows(matrix):
    """Return the column numbers of each row of a score matrix, best first."""
    matrix = sp.csr_matrix(matrix)
    rows = []
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:]):
        order = np.argsort(-matrix.data[start:end], kind="stable")
        rows.append(matrix.indices[start:end][order].tolist())
    return rows


def answer(**result):
    print("RESULT " + json.dumps(result), flush=True)
