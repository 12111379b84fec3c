"""Benchmarks of omikuji: default settings (three balanced trees) on prepared features."""

import common
import omikuji
from common import THREADS, TOP, Clock


def default(folder, options):
    clock, name = Clock(), options.get("features", "X")
    model = clock(
        "train",
        omikuji.Model.train_on_data,
        str(folder / f"{name}.trn.txt"),
        omikuji.Model.default_hyper_param(),
        THREADS,
    )
    trained_mb = common.peak_mb()
    model.init_prediction_thread_pool(THREADS)
    test = common.load(folder, f"{name}.tst")
    labels = common.load(folder, "Y.trn").shape[1]

    def predict():
        rows = []
        for row in range(test.shape[0]):
            span = slice(test.indptr[row], test.indptr[row + 1])
            pairs = list(zip(test.indices[span].tolist(), test.data[span].tolist()))
            rows.append([label for label, _ in model.predict(pairs, beam_size=10, top_k=TOP)])
        return rows

    common.save_predictions(folder, "omikuji", clock("predict", predict), labels)
    common.answer(seconds=clock.seconds, cpu_seconds=clock.cpu_seconds, peak_mb=trained_mb)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    default(folder, options)
