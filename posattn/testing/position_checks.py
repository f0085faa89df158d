"""Checks of how position reaches the output, and of which changes of position must not."""

import torch
from pydantic import ValidationError
from torch import Tensor

from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts
from posattn.testing.expect import ensure, ensure_close, ensure_differs
from posattn.testing.mechanism_case import PAD, VOCAB_SIZE, MechanismCase

EXACT = 1e-9  # of float64 states of size about 1
FAR = 2000  # a shift past any threshold below which absolute position does not count


def check_position_reaches_the_output(case: MechanismCase) -> None:
    """Permuting the tokens changes more than the order of the outputs.

    If not: the mechanism does nothing that the output can see; or traits() must say
    knows_position=False.
    """
    permuted, expected = _permuted(case)
    what = "the output only follows the order of the tokens, so position does nothing"
    ensure_differs(permuted, expected, what)


def check_the_encoder_is_permutation_equivariant(case: MechanismCase) -> None:
    """Permuting the tokens permutes the outputs and changes nothing else.

    If not: the mechanism knows positions although traits() says that it does not.
    """
    permuted, expected = _permuted(case)
    ensure_close(permuted, expected, "output of permuted tokens", 1e-6)


def check_translation_changes_nothing(case: MechanismCase) -> None:
    """Shifting all positions changes no output.

    If not: the same text further right is read differently; or traits() must say
    translation_invariant=False.
    """
    shifted, plain = _shifted(case)
    ensure_close(shifted, plain, "output at shifted positions", 1e-6)


def check_translation_changes_the_output(case: MechanismCase) -> None:
    """Shifting all positions changes the output, or the traits are too modest.

    If not: absolute position does not matter; traits() must say translation_invariant=True.
    """
    shifted, plain = _shifted(case)
    ensure_differs(shifted, plain, "a shift changes nothing: declare translation_invariant=True")


def check_reversal_mirrors_the_output(case: MechanismCase) -> None:
    """Reversing the tokens reverses the outputs, on every backend.

    If not: left and right differ although traits() says knows_direction=False.
    """
    for backend in case.able_backends():
        reversed_, plain = _reversed(case, backend)
        ensure_close(reversed_, plain, f"{backend}: output of reversed tokens", 1e-6)


def check_reversal_changes_the_output(case: MechanismCase) -> None:
    """Reversing the tokens does more than reverse the outputs: left differs from right.

    If not: left and right cannot be told apart; traits() must say knows_direction=False.
    """
    reversed_, plain = _reversed(case, "eager")
    what = "reversal only mirrors the output: declare knows_direction=False"
    ensure_differs(reversed_, plain, what)


def check_later_tokens_are_invisible(case: MechanismCase) -> None:
    """No output depends on a later token.

    If not: a causal mechanism leaks the future.
    """
    changed, plain = _with_other_last_token(case)
    ensure_close(changed[:, :-1], plain[:, :-1], "outputs before the changed token", EXACT)
    ensure_differs(changed[:, -1], plain[:, -1], "the last token does not see itself")


def check_later_tokens_are_visible(case: MechanismCase) -> None:
    """Every output depends on the last token, or the mechanism is causal without saying so.

    If not: keys are hidden without traits() saying causal=True.
    """
    changed, plain = _with_other_last_token(case)
    for index in range(plain.shape[1]):
        what = f"output {index} does not see the last token: declare causal=True"
        ensure_differs(changed[:, index], plain[:, index], what, 1e-8)


def check_padding_changes_nothing(case: MechanismCase) -> None:
    """Real tokens do not see how much padding there is, on which side, or what it holds.

    If not: a text's result depends on what it is batched with; positions may be counted over padding.
    """
    for backend in case.able_backends():
        model = case.model(dtype=torch.float32, backend=backend, embedding_norm=False)
        ids = case.ids(2, 6)
        alone = model.encoder(ids)
        for left, right in ((0, 5), (0, 1), (5, 0), (2, 3)):
            padded = _padded(ids, left, right)
            if case.length(padded.shape[1]) < padded.shape[1]:
                continue
            states = model.encoder(padded, visible=padded != PAD)
            what = f"{backend}: real tokens beside {left} left and {right} right pads"
            ensure_close(states[:, left : left + ids.shape[1]], alone, what, 1e-5)
            _make_padding_huge(model)


def check_padding_beside_real_tokens_in_one_batch(case: MechanismCase) -> None:
    """A batch of rows padded left, right and not at all gives each row what it gives alone.

    If not: rows of one batch disturb each other; a tensor may lack its batch axis.
    """
    model, long = case.model(), case.ids(1, 5)
    short = long[:, :-2]
    batch = torch.cat([long, _padded(short, 2, 0), _padded(short, 0, 2)])
    states = model.encoder(batch, visible=batch != PAD)
    alone, whole = model.encoder(short)[0], model.encoder(long)[0]
    ensure_close(states[0], whole, "the row without padding", EXACT)
    ensure_close(states[1, 2:], alone, "the row padded left", EXACT)
    ensure_close(states[2, : short.shape[1]], alone, "the row padded right", EXACT)


def check_texts_without_padding_are_what_they_are_in_rows(case: MechanismCase) -> None:
    """`unpad` changes no output and no gradient, of padded rows and of packed documents.

    If not: what is learned and predicted depends on how the batch is computed; a bias, rotation or rule
    may rely on the number of a token in its row. With memory the encoder has to refuse.
    """
    if case.config.memory():
        try:
            case.encoder_config(unpad=True)
        except ValidationError as refusal:
            ensure("memory" in str(refusal), f"the refusal does not name memory: {refusal}")
            return
        raise AssertionError("unpad is accepted although memory joins rows")
    ids = case.ids(4, 7)
    length = ids.shape[1]
    column = torch.arange(length)
    ends = torch.tensor([[length], [max(length - 2, 1)], [max(length - 3, 1)], [1]])
    visible = column < ends
    visible[1] = visible[1].flip(0)  # padded on the left
    rows, texts = case.model(), case.model(unpad=True)
    for documents in (None, (column // 3).expand(4, -1)):
        found = []
        for model in (texts, rows):
            model.zero_grad()
            output = model(ids, visible=visible, documents=documents, selected=visible)
            torch.autograd.backward([output.logits.square().sum()])
            found.append((output.logits, *_learned(model)))
        what = "of padded rows" if documents is None else "of packed documents"
        for ours, theirs in zip(*found, strict=True):
            scale = max(1.0, float(theirs.detach().abs().max()))
            ensure_close(ours, theirs, f"an output or gradient {what}", EXACT * scale)


def check_packed_documents_do_not_meet(case: MechanismCase) -> None:
    """A document in a packed block has the states that it has alone; segment memory refuses blocks.

    If not: packed texts see each other, or their positions do not start anew.
    """
    model, ids = case.model(), case.ids(1, 7)
    split = (ids.shape[1] + 1) // 2
    documents = torch.tensor([[0] * split + [1] * (ids.shape[1] - split)])
    if case.config.memory():
        try:
            model.encoder(ids, documents=documents)
        except IncompatibleParts:
            return
        raise AssertionError("several documents share one memory, and nothing complains")
    states = model.encoder(ids, documents=documents)
    ensure_close(states[:, :split], model.encoder(ids[:, :split]), "first document", EXACT)
    ensure_close(states[:, split:], model.encoder(ids[:, split:]), "second document", EXACT)


def _permuted(case: MechanismCase) -> tuple[Tensor, Tensor]:
    model, ids = case.model(), case.ids(2, 7)
    order = torch.randperm(ids.shape[1], generator=torch.Generator().manual_seed(3))
    ensure(ids.shape[1] > 2, "the mechanism takes two tokens at most: too few to permute")
    return model.encoder(ids[:, order]), model.encoder(ids)[:, order]


def _shifted(case: MechanismCase) -> tuple[Tensor, Tensor]:
    model, limit = case.model(), case.config.max_length()
    ids = case.ids(2, 7)
    if limit is not None:
        ids = ids[:, : max(limit - 1, 1)]
    shift = FAR if limit is None else min(FAR, limit - ids.shape[1])
    positions = torch.arange(ids.shape[1])[None]
    return model.encoder(ids, positions=positions + shift), model.encoder(ids, positions=positions)


def _reversed(case: MechanismCase, backend: str) -> tuple[Tensor, Tensor]:
    model, ids = case.model(backend=backend), case.ids(2, 7)
    return model.encoder(ids.flip(1)), model.encoder(ids).flip(1)


def _with_other_last_token(case: MechanismCase) -> tuple[Tensor, Tensor]:
    model, ids = case.model(), case.ids(2, 6)
    other = ids.clone()
    other[:, -1] = other[:, -1] % (VOCAB_SIZE - 1) + 1
    return model.encoder(other), model.encoder(ids)


def _padded(ids: Tensor, left: int, right: int) -> Tensor:
    return torch.nn.functional.pad(ids, (left, right), value=PAD)


def _make_padding_huge(model: MaskedLanguageModel) -> None:
    signs = torch.arange(model.config.hidden_size) % 2 * 2.0 - 1.0
    with torch.no_grad():
        model.encoder.tokens.weight[PAD] = 1e4 * signs


def _learned(model: MaskedLanguageModel) -> list[Tensor]:
    return [weight.grad for weight in model.parameters() if weight.grad is not None]
