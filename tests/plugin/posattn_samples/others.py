"""One plug-in of every other kind, each as small as can be."""

from hashlib import sha256
from typing import ClassVar, Literal

import numpy as np
from pydantic import PositiveInt

from posattn.backends import AttentionBackend, EagerBackend
from posattn.checkpoints.families import Family, Plan
from posattn.checkpoints.mapping import Table, rule
from posattn.comparison.evaluations.base import EvaluationConfig, RunEvaluation
from posattn.encoder.decoder import Decoder, DecoderConfig, PlainDecoder, PlainDecoderConfig
from posattn.encoder.tasks import TaskConfig, TaskHead, TaskOutput
from posattn.training.objectives import Objective, ObjectiveConfig
from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile
from posattn.training.text.pieces import Piece
from posattn.training.text.tokenizers import (
    CharactersConfig,
    CharactersTokenizer,
    TokenizerConfig,
    TokenizerKind,
)


class PatientBackend(AttentionBackend):
    """Eager attention, under another name."""

    name: ClassVar[str] = "patient"

    def refusals(self, call):
        return []

    def run(self, call):
        return EagerBackend().run(call)

    def rank(self, call):
        return 1000


class EverywhereConfig(DecoderConfig):
    name: Literal["everywhere"] = "everywhere"


class EverywhereDecoder(Decoder[EverywhereConfig]):
    """The last layer at every place."""

    Config = EverywhereConfig

    def __init__(self, config, encoder):
        super().__init__(config, encoder)
        self.plain = PlainDecoder(PlainDecoderConfig(decode="all"), encoder)

    def forward(self, encoder, inputs, context, queries, observer=None):
        return self.plain(encoder, inputs, context, queries, observer)


class CountingConfig(CorpusConfig):
    name: Literal["counting"] = "counting"
    until: PositiveInt = 2000


class CountingCorpus(Corpus):
    """The numbers, ten to a document."""

    Config = CountingConfig
    licence = "none needed"

    def source(self, progress):
        text = "".join(piece.text for piece in self.pieces()).encode()
        file = SourceFile(name="numbers", sha256=sha256(text).hexdigest(), bytes=len(text))
        return Source(
            name="counting", licence=self.licence, attribution="none", origin="made", files=(file,)
        )

    def pieces(self):
        for start in range(0, self.config.until, 10):
            yield Piece(" ".join(str(start + i) for i in range(10)), 0, True)


class LettersConfig(TokenizerConfig):
    name: Literal["letters"] = "letters"

    def expected_vocab_size(self):
        return 100


class LettersTokenizer(TokenizerKind):
    """At most 100 characters."""

    Config = LettersConfig

    def make(self, texts):
        return CharactersTokenizer(CharactersConfig(vocab_size=100)).make(texts)


class EveryNthConfig(ObjectiveConfig):
    name: Literal["every_nth"] = "every_nth"
    every: PositiveInt = 5

    def target_fraction(self):
        return 1 / self.every

    def card(self):
        return {"objective": f"restore every token number {self.every}"}


class EveryNth(Objective):
    """Masks every n-th token, without chance."""

    Config = EveryNthConfig

    def apply(self, ids, visible, keys, counters):
        ordinary = visible & ~self.vocabulary.is_special(ids)
        chosen = ordinary & (np.arange(ids.shape[1]) % self.config.every == 0)[None]
        return np.where(chosen, self.vocabulary.mask, ids), np.where(chosen, ids, -100)


class WeightConfig(EvaluationConfig):
    name: Literal["weight"] = "weight"


class WeightEvaluation(RunEvaluation):
    """The sum of all squared weights."""

    Config = WeightConfig

    def __init__(self, config):
        self.config = config

    def evaluate(self, subject):
        return {"sum": sum(float(p.square().sum()) for p in subject.model.parameters())}


class LoudnessConfig(TaskConfig):
    name: Literal["loudness"] = "loudness"


class LoudnessHead(TaskHead[LoudnessConfig]):
    """The norm of every state."""

    Config = LoudnessConfig

    def forward(self, hidden, visible=None):
        return TaskOutput(hidden.norm(dim=-1, keepdim=True), None)


class OnlyTokens(Family):
    """A token table and nothing else; all layers are new."""

    name = "only_tokens"
    model_types = frozenset({"only-tokens"})

    def plan(self, settings, stored):
        rows, width = stored["table"]
        encoder = {"hidden_size": width, "num_heads": 1, "num_layers": 1, "token_rows": rows}
        return Plan(encoder, Table((rule("table", "encoder.tokens.weight"),)), has_head=False)
