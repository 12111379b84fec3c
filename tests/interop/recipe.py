"""A small params.json with the structure of those of the paper's experiments, and values of its own."""

from typing import Any

MATCHER = {
    "model_shortcut": "bert-base-uncased",
    "negative_sampling": "tfn+man",
    "loss_function": "weighted-squared-hinge",
    "bootstrap_method": "weighted-linear",
    "lr_schedule": "linear",
    "threshold": 0.002,
    "hidden_dropout_prob": 0.05,
    "batch_size": 8,
    "batch_gen_workers": 16,
    "max_active_matching_labels": 500,
    "max_num_labels_in_gpu": 65536,
    "max_steps": 4,
    "max_no_improve_cnt": -1,
    "num_train_epochs": 10,
    "gradient_accumulation_steps": 1,
    "weight_decay": 0.01,
    "max_grad_norm": 2.0,
    "learning_rate": 0.0002,
    "adam_epsilon": 1e-08,
    "warmup_steps": 2,
    "logging_steps": 50,
    "save_steps": 2,
    "cost_sensitive_ranker": True,
    "use_gpu": True,
    "checkpoint_dir": "",
    "cache_dir": "",
    "init_model_dir": "",
}
RANKER = {
    "threshold": 0.001,
    "max_nonzeros_per_label": None,
    "solver_type": "L2R_L2LOSS_SVC_DUAL",
    "Cp": 1.0,
    "Cn": 2.0,
    "max_iter": 50,
    "eps": 0.05,
    "bias": 1.0,
    "threads": -1,
    "verbose": 0,
    "newton_eps": 0.01,
}


def meta(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"__meta__": {"class_fullname": f"pecos.xmc.base###{kind}"}, **values}


def indexer(**values: Any) -> dict[str, Any]:
    fixed = {"imbalanced_ratio": 0.0, "imbalanced_depth": 100, "spherical": True}
    other = {"seed": 3, "kmeans_max_iter": 10, "threads": -1}
    return meta("HierarchicalKMeans.TrainParams", {**values, **fixed, **other})


def recipe() -> dict[str, Any]:
    """Two matchers on 4-L, and rankers on 2-4-L of 12 labels (max_leaf_size 4)."""
    ranking = [{"Cp": 2.0, "Cn": 1.0}, {"bias": 0.5}, {"Cp": 4.0, "Cn": 1.0}]
    return {
        "train_params": meta(
            "XTransformer.TrainParams",
            {
                "preliminary_indexer_params": indexer(nr_splits=4, min_codes=4, max_leaf_size=4),
                "refined_indexer_params": indexer(nr_splits=2, min_codes=None, max_leaf_size=4),
                "matcher_params_chain": [
                    meta("TransformerMatcher.TrainParams", MATCHER),
                    meta("TransformerMatcher.TrainParams", {**MATCHER, "max_steps": 6}),
                ],
                "ranker_params": meta(
                    "XLinearModel.TrainParams",
                    {
                        "mode": "full-model",
                        "ranker_level": 1,
                        "nr_splits": 16,
                        "min_codes": None,
                        "shallow": False,
                        "rel_mode": "induce",
                        "rel_norm": "l1",
                        "hlm_args": meta(
                            "HierarchicalMLModel.TrainParams",
                            {
                                "neg_mining_chain": ["tfn", "tfn", "tfn+man"][: len(ranking)],
                                "model_chain": [meta("MLModel", {**RANKER, **own}) for own in ranking],
                            },
                        ),
                    },
                ),
                "do_fine_tune": True,
                "only_encoder": False,
                "fix_clustering": False,
                "max_match_clusters": 32768,
                "save_emb_dir": "",
            },
        ),
        "pred_params": meta(
            "XTransformer.PredParams",
            {
                "matcher_params_chain": [
                    meta(
                        "TransformerMatcher.PredParams",
                        {
                            "only_topk": top,
                            "post_processor": "l3-hinge",
                            "ensemble_method": "concat-only",
                            "truncate_length": 16,
                        },
                    )
                    for top in (2, 5)
                ],
                "ranker_params": meta(
                    "XLinearModel.PredParams",
                    {
                        "hlm_args": meta(
                            "HierarchicalMLModel.PredParams",
                            {
                                "model_chain": [
                                    meta("MLModel", {"only_topk": top, "post_processor": name})
                                    for top, name in ((2, "l3-hinge"), (3, "l3-hinge"), (5, "noop"))
                                ]
                            },
                        )
                    },
                ),
            },
        ),
    }
