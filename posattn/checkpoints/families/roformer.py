"""RoFormer (Su et al. 2021), as transformers stores it: BERT with rotary positions in interleaved pairs.

Token and segment tables may be narrower than the states; they are summed and normalised before they are
projected. The stored sinusoids are checked and computed anew; their number, the longest input of
transformers, limits nothing here. A choice among texts reads the last token, of which transformers takes
padding for one if there is any: here it is the last real token.
"""

from collections.abc import Mapping
from typing import Any, final

from torch import Tensor
from typing_extensions import override

from posattn.checkpoints.families.base import Family, Plan, families
from posattn.checkpoints.families.bert import refuse_decoders
from posattn.checkpoints.families.bert_layers import (
    QKV,
    config_of,
    embedding_rules,
    layer_rules,
    masked_token_rules,
    part_of,
    shape_of,
    with_segments,
)
from posattn.checkpoints.families.heads import Heads
from posattn.checkpoints.mapping import POSITION_IDS, Derived, Table, rule
from posattn.checkpoints.settings import Settings
from posattn.positions import sinusoids
from posattn.training.weights import Shape

ROOT = "(roformer.)"
LONGEST = 4096
"""The longest input of an exported model: transformers keeps a table of sinusoids."""


@final
@families.register("roformer")
class RoFormer(Family):
    """RoFormer: BERT whose queries and keys turn with position."""

    name = "roformer"
    model_types = frozenset({"roformer"})
    prefix = "RoFormer"
    zeros = ("encoder.segments.weight",)

    @override
    def plan(self, settings: Settings, stored: Mapping[str, Shape]) -> Plan:
        refuse_decoders(settings)
        heads = _heads(settings, stored)
        rules = [
            *embedding_rules(ROOT),
            rule(f"{ROOT}embeddings_project.{{p}}", "encoder.embedding_proj.{p}"),
            *layer_rules(ROOT, QKV),
            *masked_token_rules(
                "cls.predictions",
                "cls.predictions.transform.dense",
                "cls.predictions.transform.LayerNorm",
            ),
            *heads.rules,
        ]
        why = "sinusoids of the positions; computed anew, for any length"
        table = Derived(f"{ROOT}encoder.embed_positions.weight", why, expected=_sinusoids)
        has_head = heads.has_masked_tokens("cls.predictions.")
        derived = (*POSITION_IDS, table)
        return Plan(_encoder(settings), Table(tuple(rules), derived), has_head, heads.tasks)

    @override
    def config(self, encoder: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **config_of(encoder),
            "model_type": "roformer",
            "type_vocab_size": encoder["segments"],
            "embedding_size": encoder["embedding_size"] or encoder["hidden_size"],
            "rotary_value": part_of(encoder, "rope").get("rotate_value", False),
            "max_position_embeddings": LONGEST,
        }

    @override
    def widened(self, encoder: dict[str, Any]) -> dict[str, Any]:
        return with_segments(encoder)


def _encoder(settings: Settings) -> dict[str, Any]:
    shape = shape_of(settings, eps=1e-12)
    turned = settings.flag("rotary_value", False)
    narrow = shape["hidden_size"]
    if "embedding_size" in settings:
        narrow = settings.whole("embedding_size", narrow)
    encoder = {
        **shape,
        "segments": settings.whole("type_vocab_size", 2),
        "token_rows": settings.whole("vocab_size", 50000),
        "mechanism": [{"name": "rope", "layout": "interleaved", "rotate_value": turned}],
    }
    if narrow != shape["hidden_size"]:
        encoder |= {"embedding_size": narrow, "embedding_projection": "sum"}
    return encoder


def _sinusoids(stored: Tensor) -> Tensor:
    """Return sines of all positions and then their cosines, as many as are stored."""
    length, width = stored.shape
    rows = stored.new_zeros(length).long().add(1).cumsum(0) - 1
    return sinusoids(rows, width, 10000.0, "concatenated")


def _heads(settings: Settings, stored: Mapping[str, Shape]) -> Heads:
    """Return the heads: labels of texts through a projection of their own, a choice through none."""
    heads = Heads(settings, stored)
    dropout = settings.number("hidden_dropout_prob", 0.1)
    transform = {"activation": settings.activation("hidden_act", "gelu"), "dropout": dropout}
    own = {"transform": transform, "dropout": dropout}
    heads.sequence("classifier.out_proj", own, {"transform.proj": "classifier.dense"})
    heads.choice("classifier", {"pool": "last", "transform": None}, {})
    heads.token("classifier", dropout)
    heads.span("qa_outputs")
    return heads
