"""The paper's figures of XR-Transformer, and tables that show measured figures beside them."""

# XR-Transformer, three models: P@1, P@3, P@5 (main results) and hours of training on 8 V100.
ENSEMBLE = {
    "eurlex-4k": {"P@1": 88.41, "P@3": 75.97, "P@5": 63.18, "hours": 0.8},
    "wiki10-31k": {"P@1": 88.69, "P@3": 80.17, "P@5": 70.91, "hours": 1.5},
    "amazoncat-13k": {"P@1": 96.79, "P@3": 83.66, "P@5": 68.04, "hours": 13.2},
    "wiki-500k": {"P@1": 79.40, "P@3": 59.02, "P@5": 46.25, "hours": 38.0},
    "amazon-670k": {"P@1": 50.11, "P@3": 44.56, "P@5": 40.64, "hours": 10.5},
    "amazon-3m": {"P@1": 54.20, "P@3": 50.81, "P@5": 48.26, "hours": 29.3},
}
# One model, and its hours on 1 V100.
SINGLE = {
    "wiki10-31k": {"P@1": 88.0, "P@3": 78.7, "P@5": 69.1, "hours": 1.3},
    "wiki-500k": {"P@1": 78.1, "P@3": 57.6, "P@5": 45.0, "hours": 29.2},
    "amazon-670k": {"P@1": 49.1, "P@3": 43.8, "P@5": 40.0, "hours": 8.1},
}
# Three models, with the constants of the propensity model in the XMC repository.
PROPENSITY = {
    "wiki-500k": {"PSP@1": 35.76, "PSP@3": 42.22, "PSP@5": 46.36},
    "amazon-670k": {"PSP@1": 36.16, "PSP@3": 38.39, "PSP@5": 40.99},
    "amazon-3m": {"PSP@1": 20.52, "PSP@3": 23.64, "PSP@5": 25.79},
}
# ms per text, one model, one V100, batches of one text.
INFERENCE = {
    "eurlex-4k": {"ms": 22.3},
    "wiki10-31k": {"ms": 39.1},
    "amazoncat-13k": {"ms": 26.1},
    "wiki-500k": {"ms": 33.9},
    "amazon-670k": {"ms": 30.9},
    "amazon-3m": {"ms": 35.2},
}


def tables(results):
    """Return the paper's tables as Markdown, from the results of the data sets that were measured."""
    return "\n".join(
        [
            "## Main results: three models",
            "",
            *table(results, ensemble_row, ("P@1", "P@3", "P@5"), ENSEMBLE),
            "",
            "## Single models",
            "",
            *table(results, member_rows, ("P@1", "P@3", "P@5"), SINGLE),
            "",
            "## Propensity-scored precision: three models",
            "",
            *table(results, ensemble_row, ("PSP@1", "PSP@3", "PSP@5"), PROPENSITY),
            "",
            "## Training time of three models, in hours",
            "",
            *table(results, training_row, ("hours",), ENSEMBLE),
            "",
            "## Inference, one text at a time, in ms",
            "",
            *table(results, inference_rows, ("ms",), INFERENCE),
            "",
        ]
    )


def table(results, rows_of, columns, published):
    """One table: the rows of each data set, each figure with the paper's in parentheses."""
    lines = [f"| data set | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    for dataset, result in results.items():
        for name, figures in rows_of(dataset, result).items():
            cells = [cell(figures, published.get(dataset, {}), column) for column in columns]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def cell(figures, published, column):
    """``88.1 (88.41)``: measured and published; – for what is missing."""
    measured = f"{figures[column]:.2f}" if column in figures else "–"
    return f"{measured} ({published[column]})" if column in published else measured


def in_percent(metrics):
    return {name: 100 * value for name, value in metrics.items()}


def ensemble_row(dataset, result):
    return {dataset: in_percent(result["ensemble"])} if "ensemble" in result else {}


def member_rows(dataset, result):
    return {
        f"{dataset}, {name}": in_percent(member["metrics"])
        for name, member in result["members"].items()
    }


def training_row(dataset, result):
    seconds = sum(member["training_seconds"] for member in result["members"].values())
    return {dataset: {"hours": seconds / 3600}}


def inference_rows(dataset, result):
    return {
        f"{dataset}, {name}": {"ms": member["one_text_ms"]}
        for name, member in result["members"].items()
    }
