"""The folder of a model that has no class in transformers: its own files, and a way in for AutoModel."""

from typing import Any

from posattn.checkpoints.pretrained import Pretrained

MODELING = "modeling_posattn.py"
MODELING_TEXT = '''"""Classes of this model for transformers; the package posattn must be installed."""

from posattn.checkpoints.export.hub_model import PosattnConfig as PosattnConfig
from posattn.checkpoints.export.hub_model import PosattnForMaskedLM as PosattnForMaskedLM
from posattn.checkpoints.export.hub_model import PosattnModel as PosattnModel
'''


def own_config(made: Pretrained) -> dict[str, Any]:
    """Return the contents of config.json."""
    recipe = made.recipe
    encoder = recipe.encoder
    classes = {"AutoConfig": "PosattnConfig", "AutoModel": "PosattnModel"}
    if made.masked_lm is not None:
        classes["AutoModelForMaskedLM"] = "PosattnForMaskedLM"
    return {
        "model_type": "posattn",
        "architectures": [list(classes.values())[-1]],
        "auto_map": {auto: f"modeling_posattn.{name}" for auto, name in classes.items()},
        "vocab_size": made.encoder.tokens.num_embeddings,
        "hidden_size": encoder.hidden_size,
        "num_hidden_layers": encoder.num_layers,
        "num_attention_heads": encoder.num_heads,
        "encoder": encoder.model_dump(mode="json"),
        "decoder": recipe.decoder.model_dump(mode="json"),
        "head": recipe.head.model_dump(mode="json"),
    }
