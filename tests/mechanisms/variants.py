"""Every built-in mechanism with the sets of options that make it a different function."""

from typing import Any

variants: dict[str, dict[str, dict[str, Any]]] = {
    "none": {"default": {}},
    "learned": {
        "bert": {"max_positions": 40},
        "roberta": {"max_positions": 42, "padding_row": 1},
    },
    "sinusoidal": {
        "default": {},
        "concatenated": {"order": "concatenated", "base": 100.0, "scale": 0.5},
        "learned scale": {"learned_scale": True, "scale": 0.3},
    },
    "rope": {
        "default": {},
        "interleaved": {"layout": "interleaved", "base": 500.0},
        "partial": {"fraction": 0.5},
        "rotated values": {"rotate_value": True},
        "linear": {"scaling": {"kind": "linear", "factor": 3.0}},
        "ntk": {"scaling": {"kind": "ntk", "factor": 4.0}, "layout": "interleaved"},
        "dynamic ntk": {"scaling": {"kind": "dynamic_ntk", "factor": 2.0, "original_length": 3}},
        "yarn": {"scaling": {"kind": "yarn", "factor": 4.0, "original_length": 8}},
        "second layer only": {"layers": [1]},
    },
    "alibi": {
        "default": {},
        "plain slopes": {"slopes": "plain"},
        "learned": {"learned_slopes": True},
        "halves": {"variant": "halves"},
        "separate": {"variant": "separate"},
        "separate learned": {"variant": "separate", "learned_slopes": True},
        "offset": {"variant": "offset", "slopes": "end_to_end"},
    },
    "transformer_xl": {
        "default": {},
        "causal": {"bidirectional": False},
        "clamped": {"clamp_distance": 3},
        "untied with memory": {"untie": True, "memory_length": 4},
        "causal with memory": {"bidirectional": False, "memory_length": 3, "base": 100.0},
        "dropout on the table": {"table_dropout": 0.5},
        "xlnet": {"untie": True, "segment_term": True},
    },
    "disentangled": {
        "default": {},
        "v1": {
            "buckets": {"name": "clipped", "max_distance": 4},
            "projections": "own",
            "norm_table": False,
        },
        "own projections of v2": {"projections": "own", "key_bias": True},
        "coarse log buckets": {"buckets": {"name": "log", "num_buckets": 4, "max_distance": 8}},
        "growing buckets": {
            "buckets": {"name": "log", "num_buckets": 6, "max_distance": 5, "beyond": "growing"}
        },
        "paper index": {"p2c_index": "paper"},
        "paper index, all terms, v1": {
            "p2c_index": "paper",
            "p2p": True,
            "buckets": {"name": "clipped", "max_distance": 3},
            "projections": "own",
        },
        "all terms": {"p2p": True, "buckets": {"name": "log", "num_buckets": 6, "max_distance": 9}},
        "c2p only": {"p2c": False, "scale_terms": 3},
        "p2c only, own": {"c2p": False, "projections": "own"},
        "p2p only": {"c2p": False, "p2c": False, "p2p": True},
        "dropout on the table": {"table_dropout": 0.5, "projections": "own"},
    },
    "t5": {
        "default": {},
        "few buckets, not scaled": {"num_buckets": 6, "max_distance": 5, "scale": "none"},
        "causal": {"bidirectional": False, "num_buckets": 6, "max_distance": 9},
    },
    "shaw": {
        "default": {},
        "keys only, each head": {"adds_to": "keys", "max_distance": 3, "share_heads": False},
        "values only, each head": {"adds_to": "values", "max_distance": 2, "share_heads": False},
        "one row": {"max_distance": 0},
    },
    "kerple": {
        "default": {},
        "power": {"kernel": "power"},
        "causal": {"bidirectional": False},
    },
    "sandwich": {
        "default": {},
        "narrow": {"width": 6, "base": 100.0},
        "causal": {"bidirectional": False},
    },
    "fire": {
        "default": {},
        "low threshold": {"first_threshold": 3.0, "hidden_width": 8},
        "shared, sign as input": {"shared": True, "form": "sign_input", "first_threshold": 2.0},
        "causal, one hidden layer": {"form": "causal", "hidden_layers": 1, "first_threshold": 3.0},
    },
    "tupe": {
        "default": {},
        "short": {"max_positions": 40},
        "tied": {"max_positions": 40, "untie_cls": False},
        "relative": {"max_positions": 40, "relative": {"num_buckets": 6, "max_distance": 5}},
        "relative, tied": {"untie_cls": False, "relative": {"num_buckets": 4, "max_distance": 3}},
    },
    "cape": {
        "default": {},
        "centred, all scales": {
            "centred": True,
            "global_shift": 2.0,
            "local_shift": 0.25,
            "max_scale": 1.4,
            "position_scale": 0.5,
            "frequency_scale": 2.0,
            "order": "concatenated",
            "base": 100.0,
        },
    },
    "mlp": {
        "default": {},
        "log, deep, normed": {"coordinate": "log", "depth": 3, "norm": True, "width": 6},
        "swin": {
            "coordinate": "swin",
            "max_distance": 6,
            "bound": 16.0,
            "activation": "relu",
            "output_bias": False,
            "share": "layer",
            "depth": 1,
        },
    },
    "relative_logits": {
        "default": {},
        "near only": {"extent": 3, "rank": 2},
        "causal": {"causal": True, "extent": 4, "rank": 5},
    },
    "pope": {
        "default": {},
        "spread, no bound": {"phase": "spread", "phase_bound": "none", "base": 100.0},
        "symmetric": {"phase": "none"},
    },
    "cope": {
        "default": {},
        "short table": {"max_position": 3},
        "causal": {"causal": True, "max_position": 5},
        "to the end": {"count": "to_end", "max_position": 4},
    },
    "dape": {
        "default": {},
        "over disentangled": {"mechanism": {"name": "disentangled", "p2p": True}, "width": 6},
        "over halves": {"mechanism": {"name": "alibi", "variant": "halves"}, "width": 5},
        "over causal memory": {
            "mechanism": {"name": "transformer_xl", "bidirectional": False, "memory_length": 3},
            "width": 5,
        },
    },
    "randomized": {
        "default": {"max_position": 48},
        "learned": {
            "mechanism": {"name": "learned", "max_positions": 50},
            "max_position": 50,
        },
        "disentangled, spread": {
            "mechanism": {"name": "disentangled", "projections": "own"},
            "max_position": 64,
            "evaluation": "spread",
        },
        "symmetric alibi in one layer": {
            "mechanism": "alibi",
            "max_position": 41,
            "layers": [1],
        },
    },
    "xpos": {
        "causal": {"causal": True},
        "half, fast decay": {"causal": True, "layout": "half", "scale_base": 16.0, "gamma": 0.8},
    },
}
