"""The model card, README.md: what the model computes, from what text, with what scores and limits."""

from collections.abc import Iterator, Mapping
from typing import Any

from posattn.checkpoints.export.facts import RunFacts
from posattn.checkpoints.export.tokenizer_files import longest_text
from posattn.checkpoints.pretrained import Pretrained
from posattn.recipe.card import make_card
from posattn.recipe.writer import write_yaml


def model_card(
    facts: RunFacts, made: Pretrained, architecture: str, needs: str | None, notes: tuple[str, ...]
) -> str:
    """Return the text; `needs` names a package without which the folder cannot be loaded."""
    recipe = made.recipe
    tags = ["fill-mask"] if made.masked_lm is not None else ["feature-extraction"]
    front = {
        "library_name": "transformers",
        "pipeline_tag": tags[0],
        "tags": ["posattn", *(part.name for part in recipe.encoder.mechanism)],
    }
    sections = [
        f"---\n{write_yaml(front)}---\n\n# {recipe.name}\n\n{recipe.description or 'An encoder.'}",
        _loading(architecture, needs),
        "## Architecture\n\n" + _table(make_card(recipe, made.encoder.tokens.num_embeddings)),
        "## Text\n\n" + "\n".join(_text(facts)),
        "## Training\n\n" + "\n".join(_training(facts, made)),
        "## Scores\n\n" + "\n".join(_scores(facts)),
        "## Limits\n\n" + "\n".join(f"* {line}" for line in _limits(facts, made, notes)),
    ]
    return "\n\n".join(sections) + "\n"


def _loading(architecture: str, needs: str | None) -> str:
    kind = {"MaskedLM": "AutoModelForMaskedLM"}.get(architecture.rpartition("For")[2], "AutoModel")
    option = "" if needs is None else ", trust_remote_code=True"
    hint = "" if needs is None else f"\n\nThe package `{needs}` must be installed."
    return (
        "## Loading\n\n```python\nfrom transformers import AutoTokenizer, "
        f'{kind}\n\ntokenizer = AutoTokenizer.from_pretrained(".")\nmodel = {kind}.from_pretrained('
        f'"."{option})  # {architecture}\n```{hint}'
    )


def _table(card: Mapping[str, Mapping[str, str | int]]) -> str:
    rows = [
        f"| {part} | {key} | {str(value).replace('|', ' or ')} |"
        for part, lines in card.items()
        for key, value in lines.items()
    ]
    return "\n".join(["| part | | |", "| --- | --- | --- |", *rows])


def _text(facts: RunFacts) -> Iterator[str]:
    data = facts.data
    if data is None:
        yield "Not recorded: the weights were imported."
        return
    yield f"* {data['name']}, {data['origin']}"
    yield f"* Licence: {data['licence']}. {data['attribution']}"
    yield (
        f"* {data['train']['tokens']:,} tokens for training and {data['validation']['tokens']:,} held out, "
        f"of {data['documents']:,} documents"
    )
    yield f"* Tokenizer: {data['tokenizer']}, {data['vocab_size']:,} ids"


def _training(facts: RunFacts, made: Pretrained) -> Iterator[str]:
    if facts.status is None:
        yield "Not recorded."
        return
    train, status = made.recipe.train, facts.status
    yield f"* Seed {train.seed}; state: {status['state']}"
    yield f"* {status['step']:,} steps, {status['tokens']:,} tokens, {status['targets']:,} predicted"
    yield f"* Learning rate {train.learning_rate:g}, batches of {train.batch_size} rows"
    if train.start is not None:
        yield "* Training began from other weights"


def _scores(facts: RunFacts) -> Iterator[str]:
    found = facts.validation
    if found is None:
        yield "None are recorded: the run was not part of a study."
        return
    yield (
        f"* This run, on held-out text: loss {found['loss']:.4f}, accuracy {found['accuracy']:.4f}, "
        f"{found['targets']:,} masked tokens"
    )
    for name, score in (facts.arm or {}).get("scores", {}).items():
        if text := _interval(score["summary"]):
            yield f"* {name.replace('_', ' ')}, this arm over seeds: {text}"
    for contrast in facts.contrasts:
        if text := _interval(contrast["difference"]):
            yield f"* {contrast['first']} minus {contrast['second']}, over paired seeds: {text}"


def _interval(found: Mapping[str, Any]) -> str | None:
    """Return a mean with its interval or spread, or None where there is no number."""
    mean, low, high = (found.get(key) for key in ("mean", "low", "high"))
    if mean is None:
        return None
    sd = found.get("sd")
    span = "" if sd is None else f", standard deviation {sd:.4f}"
    if low is not None and high is not None:
        span = f", 95 % interval [{low:.4f}, {high:.4f}]"
    return f"{mean:.4f}{span}, {found['n']} seeds"


def _limits(facts: RunFacts, made: Pretrained, notes: tuple[str, ...]) -> Iterator[str]:
    yield (
        f"Texts are cut to {longest_text(made)} tokens; rows of training had "
        f"{made.recipe.data.max_length}."
    )
    yield "Trained on masked tokens of the text above only; nothing was filtered for bias or harm."
    yield from notes
    yield from facts.limits
