"""A folder with a tiny base recipe and a factorial study over it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from posattn.comparison.study import Study, load_study

BASE = """\
encoder:
  hidden_size: 16
  num_layers: 2
  num_heads: 2
  mechanism: {name: disentangled, buckets: {name: clipped, max_distance: 16}, projections: own}
objective: {name: mlm}
data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 16}
train: {steps: 3, batch_size: 4}
"""
STUDY = """\
base: base.yaml
factors:
  c2p: {on: {encoder.mechanism.c2p: true}, off: {encoder.mechanism.c2p: false}}
  emd: {on: {decoder: {name: emd}}, off: {decoder: {name: plain}}}
baseline: {c2p: on, emd: on}
seeds: [0, 1]
evaluations: [validation]
"""

LoadText = Callable[..., Study]


@pytest.fixture
def load(tmp_path: Path) -> LoadText:
    """Return a function that loads a study's text, with pieces replaced, beside the base recipe."""
    (tmp_path / "base.yaml").write_text(BASE)

    def loaded(text: str = STUDY, *pairs: tuple[str, str]) -> Study:
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "s.yaml").write_text(text)
        return load_study(tmp_path / "s.yaml")

    return loaded
