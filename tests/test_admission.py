"""A plug-in that cannot serve is refused at the door, in words about its class."""

from importlib import import_module
from typing import Any, ClassVar, Literal

import pytest

from posattn.backends import AttentionBackend
from posattn.backends import registry as backends
from posattn.cli.listing import _REGISTRIES
from posattn.comparison.evaluations.base import (
    Evaluation,
    EvaluationConfig,
    RunEvaluation,
    StudyEvaluation,
    evaluations,
)
from posattn.comparison.metrics import metrics
from posattn.mechanisms import Mechanism, MechanismConfig
from posattn.mechanisms import registry as mechanisms
from posattn.training.text.corpora.base import Corpus, CorpusConfig, corpora


class MineConfig(MechanismConfig):
    name: Literal["mine"] = "mine"
    reach: int = 1


class Mine(Mechanism[MineConfig]):
    Config = MineConfig


def refusal(entry: object, registry: Any = mechanisms, name: str = "mine") -> str:
    return registry.problem(name, entry)


def with_options(body: dict[str, Any], **defaults: Any) -> type:
    """Return the mechanism with a config of these annotations and defaults."""
    namespace = {"__annotations__": body, "__module__": __name__, **defaults}
    config = type("BadConfig", (MechanismConfig,), namespace)
    return type("Bad", (Mechanism,), {"Config": config})


def test_whatever_ships_is_let_in():
    for module, attribute in _REGISTRIES.values():
        registry = getattr(import_module(module), attribute)
        for name in registry.names():
            assert registry.problem(name, registry.get(name)) == "", name
    for name in metrics.names():
        assert metrics.problem(name, metrics.get(name)) == ""
    assert refusal(Mine) == ""


def test_something_else_than_a_mechanism_is_refused():
    assert "is not a class" in refusal(Mine.prepare)
    assert "Other is not derived from Mechanism" in refusal(type("Other", (), {}))
    assert "lower-case" in refusal(Mine, name="Mine It")
    assert "is not a Metric" in refusal("loss", metrics)


def test_a_class_without_options_of_its_own_is_refused():
    bare = type("Bare", (Mechanism,), {})
    assert "Bare has no 'Config'" in refusal(bare)
    borrowed = type("Borrowed", (Mechanism,), {"Config": MechanismConfig})
    assert "Borrowed.Config is not a class derived from MechanismConfig" in refusal(borrowed)


def test_options_that_shadow_ours_are_refused():
    assert "the option 'layers' of BadConfig shadows posattn's own" in refusal(
        with_options({"name": Literal["mine"], "layers": int}, name="mine", layers=3)
    )
    with pytest.warns(UserWarning, match="shadows an attribute"):
        entry = with_options({"name": Literal["mine"], "card": int}, name="mine", card=3)
    assert "the option 'card' of BadConfig hides the method MechanismConfig.card" in refusal(entry)
    assert "BadConfig.name shadows ours" in refusal(with_options({"name": str}, name="mine"))
    assert "the registered name is 'mine'" in refusal(
        with_options({"name": Literal["other"]}, name="other")
    )


def test_options_that_are_not_strict_or_have_no_schema_are_refused():
    lax = with_options({"name": Literal["mine"]}, name="mine", model_config={"extra": "allow"})
    assert "changes model_config['extra'] from 'forbid'" in refusal(lax)
    odd = with_options(
        {"name": Literal["mine"], "thing": Mine | None},
        name="mine",
        thing=None,
        model_config={"arbitrary_types_allowed": True},
    )
    assert "BadConfig has no JSON Schema" in refusal(odd)


@pytest.mark.parametrize(
    ("hook", "method", "text"),
    [
        ("bias", lambda self: None, r"Bad.bias(self) has the wrong signature; it is called as"),
        ("rotate", lambda self, heads: heads, "called as rotate(self, heads, prepared)"),
        ("prepare", lambda self, geometry, more: None, "called as prepare(self, geometry)"),
        ("__init__", lambda self: None, "called as __init__(self, config, dims)"),
        ("embed", "a word", "Bad.embed is not a method but of type str"),
        ("make_layer", property(lambda self: None), "of type property"),
        ("bias", staticmethod(lambda: None), "called as bias(self, site)"),
    ],
)
def test_a_hook_with_the_wrong_signature_is_refused(hook, method, text):
    assert text in refusal(type("Bad", (Mine,), {hook: method}))


def test_a_hook_may_name_its_arguments_freely_and_take_more_with_defaults():
    hooks = {
        "bias": lambda me, where, extra=1: None,
        "prepare": lambda *everything: None,
        "content_term": staticmethod(lambda: "mine"),
        "__init__": lambda self, *args, **kwargs: None,
    }
    assert refusal(type("Good", (Mine,), hooks)) == ""


def test_hooks_of_the_options_are_looked_at_too():
    config = type("BadConfig", (MineConfig,), {"problems": lambda self: []})
    assert "BadConfig.problems(self) has the wrong signature" in refusal(
        type("Bad", (Mechanism,), {"Config": config})
    )


def test_other_kinds_have_their_own_doors():
    class Half(AttentionBackend):
        name: ClassVar[str] = "half"

        def __init__(self, device: str) -> None: ...

        def run(self, call): ...

    problem = refusal(Half, backends, "whole")
    assert "Half does not define refusals" in problem
    assert "called as __init__(self)" in problem
    assert "registered as 'whole' but calls itself 'half'" in problem

    class TextConfig(CorpusConfig):
        name: Literal["text"] = "text"

    class Text(Corpus):
        Config = TextConfig

        def source(self, progress): ...

        def pieces(self): ...

    assert refusal(Text, corpora, "text") == "Text has no 'licence'"

    class ScoreConfig(EvaluationConfig):
        name: Literal["score"] = "score"

    neither = type("Neither", (Evaluation,), {"Config": ScoreConfig})
    assert "not derived from RunEvaluation or StudyEvaluation" in refusal(
        neither, evaluations, "score"
    )
    body = {"Config": ScoreConfig, "__init__": lambda self, config: None}
    good = type("Good", (RunEvaluation,), {**body, "evaluate": lambda self, subject: {}})
    assert refusal(good, evaluations, "score") == ""
    fileless = type("Fileless", (StudyEvaluation,), {**body, "measure": lambda self, arena: None})
    assert "Fileless has no 'file'" in refusal(fileless, evaluations, "score")
