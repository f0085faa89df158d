"""Whether the sections of a recipe fit each other; each part is asked, no part is named."""

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import DecoderConfig
from posattn.encoder.heads import HeadConfig
from posattn.recipe.reader import KeyPath
from posattn.training.config import TrainConfig
from posattn.training.text.config import DataConfig


def disagreements(
    encoder: EncoderConfig,
    decoder: DecoderConfig,
    head: HeadConfig,
    data: DataConfig,
    train: TrainConfig,
) -> list[tuple[KeyPath, str]]:
    """Return what does not fit, each with the path to mend; empty if all fits."""
    found: list[tuple[KeyPath, str]] = []
    found.extend((("decoder",), text) for text in decoder.problems(encoder))
    found.extend((("head",), text) for text in head.problems(encoder))
    found.extend(_too_long(encoder, decoder, data))
    memory = encoder.memory_length()
    if memory and data.order != "streams":
        text = (
            f"is '{data.order}', but a mechanism keeps {memory} states of the segment before, "
            "so each row of a batch must continue the row of the batch before; write 'streams', or "
            "set the mechanism's memory to 0"
        )
        found.append((("data", "order"), text))
    if encoder.convolution and data.layout == "packed" and not data.across_documents:
        text = (
            "is false, but encoder.convolution reads neighbours, in a packed row those of other "
            "documents as well; write true, or data.layout: padded"
        )
        found.append((("data", "across_documents"), text))
    if train.compile and encoder.unpad:
        text = (
            "is true, but encoder.unpad lays tokens out by the values of each batch, which no graph for "
            "all batches can hold; use one of the two"
        )
        found.append((("train", "compile"), text))
    return found


def _too_long(
    encoder: EncoderConfig, decoder: DecoderConfig, data: DataConfig
) -> list[tuple[KeyPath, str]]:
    length = data.max_length
    limits: list[tuple[str, int | None]] = [
        (f"encoder.{name} takes at most", limit) for name, limit in encoder.limits()
    ]
    injects = f"decoder '{decoder.name}' injects positions for at most"
    limits.append((injects, decoder.max_length()))
    return [
        (
            ("data", "max_length"),
            f"is {length} tokens, but {who} {limit}; lower data.max_length to {limit} or raise that limit",
        )
        for who, limit in limits
        if limit is not None and length > limit
    ]
