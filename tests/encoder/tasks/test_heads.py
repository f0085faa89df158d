"""Task heads: how texts are pooled, what shapes come out, and that dropout ends with training."""

from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn import functional

from posattn.encoder.encoder import Encoder
from posattn.encoder.init import initialize
from posattn.encoder.tasks import AnyTaskConfig, TaskConfig, TaskModel, tasks
from posattn.encoder.tasks.pooling import pool
from posattn.errors import UnknownName
from tests.encoder.small_models import HIDDEN, VOCAB, config, ids, largest

VISIBLE = torch.tensor([[True, True, True, False], [False, True, True, False], [False] * 4])


def task_model(**heads: Any) -> TaskModel:
    """Return a small encoder with these heads, in evaluation mode."""
    adapter: TypeAdapter[TaskConfig] = TypeAdapter(AnyTaskConfig)
    configs = {name: adapter.validate_python(head) for name, head in heads.items()}
    made = TaskModel(Encoder(config("rope", initializer_range=0.3), VOCAB), configs)
    initialize(made, 0)
    return made.eval()


@pytest.mark.parametrize("how", ["first", "last", "mean", "max"])
def test_a_text_is_pooled_over_its_real_tokens_only(how: Any) -> None:
    hidden = torch.randn(3, 4, HIDDEN)
    hidden[~VISIBLE] = torch.nan
    found = pool(hidden, VISIBLE, how)
    texts = [hidden[0, :3], hidden[1, 1:3]]
    expected = {
        "first": [text[0] for text in texts],
        "last": [text[-1] for text in texts],
        "mean": [text.mean(0) for text in texts],
        "max": [text.amax(0) for text in texts],
    }[how]
    torch.testing.assert_close(found[:2], torch.stack(expected))
    assert not found[2].nan_to_num().any() or how in ("first", "last")
    whole = pool(hidden.nan_to_num(), None, how)
    torch.testing.assert_close(whole, pool(hidden.nan_to_num(), torch.ones(3, 4).bool(), how))


@torch.no_grad()
def test_shapes_are_those_that_the_heads_promise() -> None:
    made = task_model(
        labels={"name": "sequence", "num_labels": 5},
        plain={"name": "sequence", "transform": None, "pool": "mean"},
        best="choice",
        tags={"name": "token", "num_labels": 7},
        answer="span",
        vector={"name": "vector", "pool": "mean", "normalize": True},
    )
    tokens, visible = ids(3, 4), VISIBLE
    found = {name: made(name, tokens, visible=visible) for name in ("labels", "plain", "tags")}
    assert found["labels"].logits.shape == (3, 5)
    assert found["labels"].pooled.shape == (3, HIDDEN)
    assert found["plain"].logits.shape == (3, 2)
    assert found["tags"].logits.shape == (3, 4, 7)
    assert found["tags"].pooled is None
    assert made("answer", tokens).logits.shape == (3, 4, 2)
    vectors = made("vector", tokens, visible=visible)
    assert vectors.logits is None
    torch.testing.assert_close(vectors.pooled[:2].norm(dim=-1), torch.ones(2))
    both = torch.stack([tokens, tokens.flip(0)], 1)
    choices = made("best", both, visible=torch.ones_like(both).bool()).logits
    assert choices.shape == (3, 2)
    torch.testing.assert_close(choices[:, 0], choices.flip(0)[:, 1])


@torch.no_grad()
def test_labels_are_pool_projection_activation_and_projection() -> None:
    made = task_model(
        labels={"name": "sequence", "transform": {"activation": "tanh"}, "pool": "mean"}
    )
    tokens, head = ids(2, 5), made.tasks["labels"]
    pooled = torch.tanh(made.encoder(tokens).mean(1) @ head.transform.proj.weight.T)
    expected = functional.linear(pooled, head.output.weight)
    torch.testing.assert_close(made("labels", tokens).logits, expected)


@torch.no_grad()
def test_labels_of_tokens_may_have_a_projection_with_a_norm_and_without_a_bias() -> None:
    transform = {"activation": "relu", "bias": False, "norm": True}
    made = task_model(tags={"name": "token", "transform": transform})
    tokens, head = ids(2, 5), made.tasks["tags"]
    assert head.transform.proj.bias is None
    projected = torch.relu(made.encoder(tokens) @ head.transform.proj.weight.T)
    normed = functional.layer_norm(projected, (HIDDEN,), eps=1e-12)
    expected = functional.linear(normed, head.output.weight)
    torch.testing.assert_close(made("tags", tokens).logits, expected)


@pytest.mark.parametrize(
    "head",
    [
        {"name": "sequence", "dropout": 0.5},
        {"name": "sequence", "transform": {"dropout": 0.5}},
        {"name": "choice", "dropout": 0.5},
        {"name": "token", "dropout": 0.5},
        {"name": "span", "dropout": 0.5},
    ],
)
@torch.no_grad()
def test_dropout_acts_in_training_only(head: dict[str, Any]) -> None:
    made = task_model(head=head)
    tokens = ids(2, 4) if head["name"] != "choice" else ids(2, 4)[None]

    def logits() -> Tensor:
        found: Tensor = made("head", tokens).logits
        return found

    assert torch.equal(logits(), logits())
    made.train()
    assert largest(logits(), logits()) > 1e-3


def test_an_unknown_head_says_which_there_are() -> None:
    with pytest.raises(UnknownName, match=r"no head 'other' \(it has: answer\)"):
        task_model(answer="span")("other", ids(1, 2))


def test_every_registered_head_can_be_built_and_reached_by_name() -> None:
    made = task_model(**{name: name for name in tasks.names()})
    assert sorted(made.tasks) == ["choice", "sequence", "span", "token", "vector"]
