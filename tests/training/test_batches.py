import hashlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from posattn.errors import DataError, RunFailed
from posattn.training.batches import IGNORE, Batch, BatchStream, validation_batches
from posattn.training.objectives import MlmConfig
from posattn.training.text.prepare import TokenisedCorpus

Make = Callable[..., TokenisedCorpus]
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"cls": False},
    {"across_documents": False},
    {"order": "streams"},
    {"layout": "padded"},
    {"layout": "padded", "padding_side": "left", "cls": False},
]


def stream_of(corpus: TokenisedCorpus, **options: Any) -> BatchStream:
    given = {"batch_size": 4, "seed": 0} | options
    objective = given.pop("objective", MlmConfig(probability=0.3))
    return BatchStream(corpus.train, objective, **given)


def digests(batches: Iterator[Batch], count: int) -> list[str]:
    return [batch.digest() for batch in islice(batches, count)]


def by_sample(batches: Iterator[Batch]) -> dict[int, tuple[list[int], list[int]]]:
    """Return (ids, targets) of each sample, padding left out."""
    found = {}
    for batch in batches:
        for row, sample in enumerate(batch.sample_ids.tolist()):
            seen = batch.visible[row]
            found[sample] = (batch.ids[row][seen].tolist(), batch.targets[row][seen].tolist())
    return found


@pytest.fixture(params=LAYOUTS, ids=lambda layout: "-".join(map(str, layout.values())) or "packed")
def corpus(
    request: pytest.FixtureRequest, make_corpus: Make, sentences: list[str]
) -> TokenisedCorpus:
    return make_corpus(sentences, **request.param)


@pytest.fixture
def packed(make_corpus: Make, sentences: list[str]) -> TokenisedCorpus:
    return make_corpus(sentences)


def test_an_epoch_has_every_sample_once_and_uses_the_short_last_batch(
    corpus: TokenisedCorpus,
) -> None:
    samples = len(corpus.train)
    size = next(size for size in (7, 11, 13) if samples % size)
    stream = stream_of(corpus, batch_size=size)
    for epoch in range(2):
        batches = list(stream.epoch(epoch))
        assert len(batches) == stream.steps_per_epoch == -(-samples // size)
        sizes = [len(batch.ids) for batch in batches]
        assert sizes == [size] * (samples // size) + [samples % size]
        seen = [sample for batch in batches for sample in batch.sample_ids.tolist()]
        assert sorted(seen) == list(range(samples))


def test_batches_have_the_shapes_and_kinds_of_the_contract(corpus: TokenisedCorpus) -> None:
    layout = corpus.train.layout
    batch = stream_of(corpus).batch(0, 0)
    assert batch.ids.dtype == batch.targets.dtype == batch.sample_ids.dtype == torch.int64
    assert batch.visible.dtype == torch.bool
    assert batch.ids.shape == batch.targets.shape == batch.visible.shape
    assert batch.ids.shape[1] <= layout.max_length
    assert (batch.documents is None) == layout.across_documents
    assert (batch.lanes is None) == (layout.order == "shuffled")
    assert batch.segments is None
    assert batch.num_targets == int((batch.targets != IGNORE).sum())
    assert batch.num_tokens == int(batch.visible.sum())


def test_padding_is_on_the_side_of_the_layout(make_corpus: Make, sentences: list[str]) -> None:
    right = make_corpus(sentences, layout="padded")
    left = make_corpus(sentences, layout="padded", padding_side="left")
    assert by_sample(stream_of(left).epoch(0)) == by_sample(stream_of(right).epoch(0))
    padded = [batch for batch in stream_of(left).epoch(0) if not batch.visible.all()]
    assert padded
    for batch in padded:
        assert batch.visible[:, -1].all()
        assert (batch.ids[~batch.visible] == left.tokenizer.pad).all()
        assert (batch.targets[~batch.visible] == IGNORE).all()


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [2, 4])
def test_workers_change_nothing(corpus: TokenisedCorpus, workers: int) -> None:
    stream = stream_of(corpus)
    count = 2 * stream.steps_per_epoch
    alone = [batch.digest() for epoch in range(2) for batch in stream.epoch(epoch)]
    assert digests(iter(stream_of(corpus, workers=workers)), count) == alone


def test_masks_depend_on_seed_epoch_and_sample_only(packed: TokenisedCorpus) -> None:
    first = by_sample(stream_of(packed).epoch(0))
    assert by_sample(stream_of(packed, batch_size=11).epoch(0)) == first
    second = by_sample(stream_of(packed).epoch(1))
    other = by_sample(stream_of(packed, seed=1).epoch(0))
    for changed in (second, other):
        assert sum(changed[sample] == first[sample] for sample in first) < 0.1 * len(first)


def test_epochs_have_different_orders_and_seeds_too(packed: TokenisedCorpus) -> None:
    def order(seed: int, epoch: int) -> tuple[int, ...]:
        batches = stream_of(packed, seed=seed).epoch(epoch)
        return tuple(sample for batch in batches for sample in batch.sample_ids.tolist())

    assert len({order(seed, epoch) for seed in range(3) for epoch in range(3)}) == 9


def test_a_stream_resumes_anywhere(corpus: TokenisedCorpus) -> None:
    stream = stream_of(corpus, batch_size=3)
    straight = digests(iter(stream), 3 * stream.steps_per_epoch)
    for done in (1, stream.steps_per_epoch - 1, stream.steps_per_epoch, len(straight) - 2):
        epoch, index = stream.position(done)
        resumed = stream_of(corpus, batch_size=3).from_position(epoch, index)
        assert digests(resumed, len(straight) - done) == straight[done:]


def test_twenty_samples_in_batches_of_three_resume_at_epoch_ends(make_corpus: Make) -> None:
    corpus = make_corpus([f"text {number:02d}" for number in range(24)], layout="padded")
    keep = 20
    stream = stream_of(corpus, batch_size=3)
    assert len(corpus.train) >= keep
    straight = [batch.sample_ids.tolist() for epoch in range(3) for batch in stream.epoch(epoch)]
    stopped = [
        batch.sample_ids.tolist()
        for epoch in range(3)
        for batch in islice(
            stream_of(corpus, batch_size=3).from_position(epoch, 0), stream.steps_per_epoch
        )
    ]
    assert stopped == straight


def test_streams_continue_row_by_row(make_corpus: Make, sentences: list[str]) -> None:
    corpus = make_corpus(sentences, order="streams")
    stream = stream_of(corpus, batch_size=7)
    samples = len(corpus.train)
    lanes: set[int] = set()
    for epoch in range(3):
        last: dict[int, int] = {}
        for batch in stream.epoch(epoch):
            assert batch.lanes is not None
            for lane, sample in zip(batch.lanes.tolist(), batch.sample_ids.tolist(), strict=True):
                if lane in last:
                    assert sample == (last[lane] + 1) % samples
                last[lane] = sample
        assert len(last) == 7
        assert not lanes & set(last)
        lanes |= set(last)
    starts = {stream.batch(epoch, 0).sample_ids[0].item() for epoch in range(5)}
    assert len(starts) > 1


def test_too_few_samples_for_a_batch_is_an_error_with_both_numbers(packed: TokenisedCorpus) -> None:
    samples = len(packed.train)
    assert stream_of(packed, batch_size=samples).steps_per_epoch == 1
    with pytest.raises(DataError, match=rf"has {samples} samples .*batch of {samples + 1}"):
        stream_of(packed, batch_size=samples + 1)


def test_without_selection_there_are_no_targets(packed: TokenisedCorpus) -> None:
    batch = stream_of(packed, objective=MlmConfig(probability=0.0)).batch(0, 0)
    assert batch.num_targets == 0
    assert not batch.selected.any()


def test_special_tokens_are_never_targets(corpus: TokenisedCorpus) -> None:
    special = torch.tensor(sorted(corpus.tokenizer.special_ids))
    everything = stream_of(corpus, objective=MlmConfig(probability=1.0))
    for batch in everything.epoch(0):
        assert not torch.isin(batch.targets, special).any()
        framed = batch.visible & ~batch.selected
        assert torch.isin(batch.ids[framed], special).all()


def test_random_tokens_stay_below_the_tokenizers_size(packed: TokenisedCorpus) -> None:
    objective = MlmConfig(probability=1.0, mask=0.0, random=1.0, keep=0.0)
    for batch in stream_of(packed, objective=objective).epoch(0):
        assert int(batch.ids.max()) < packed.tokenizer.vocab_size
        ordinary = torch.tensor(packed.tokenizer.vocabulary.ordinary)
        assert torch.isin(batch.ids[batch.selected], ordinary).all()


SPAWNED = """
import pickle, sys, multiprocessing
from itertools import islice

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    with open(sys.argv[1], "rb") as file:
        stream = pickle.load(file)
    stream.workers = 2
    print([batch.digest() for batch in islice(stream, 5)])
"""


def test_workers_started_by_spawn_give_the_same_batches(
    packed: TokenisedCorpus, tmp_path: Any
) -> None:
    stream = stream_of(packed)
    (tmp_path / "stream.pickle").write_bytes(pickle.dumps(stream))
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "spawned.py"), str(tmp_path / "stream.pickle")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert done.stdout.strip() == str(digests(iter(stream), 5))


def test_everything_that_a_worker_gets_pickles_small(corpus: TokenisedCorpus) -> None:
    stream = stream_of(corpus)
    before = stream.batch(0, 1)
    pickled = pickle.dumps(stream)
    assert len(pickled) < 20_000
    again = pickle.loads(pickled)
    assert again.batch(0, 1).digest() == before.digest()
    assert pickle.loads(pickle.dumps(before)).digest() == before.digest()


@pytest.mark.parametrize("killed", [1, 2])
def test_a_killed_worker_ends_the_run_with_a_clear_message(
    packed: TokenisedCorpus, killed: int
) -> None:
    stream = stream_of(packed, workers=2)
    batches = iter(stream)
    next(batches)
    children = torch.multiprocessing.active_children()
    assert len(children) == 2
    for child in children[:killed]:
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match=r"data workers died.*train\.workers"):
        list(islice(batches, 10_000))


def test_a_dead_worker_is_told_where_batches_are_waited_for_and_nowhere_else(
    packed: TokenisedCorpus,
) -> None:
    before = signal.getsignal(signal.SIGCHLD)
    batches = iter(stream_of(packed, workers=1))
    next(batches)
    assert signal.getsignal(signal.SIGCHLD) == before
    (child,) = torch.multiprocessing.active_children()
    child.kill()
    child.join()  # torch's own handler would raise here, in the middle of a step of training
    with pytest.raises(RunFailed, match=r"data workers died"):
        list(islice(batches, 10_000))


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError("reset by peer")])
def test_a_connection_that_breaks_is_a_dead_worker(
    packed: TokenisedCorpus, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(loader: object) -> Iterator[Batch]:
        raise error
        yield

    monkeypatch.setattr("posattn.training.batches._started", broken)
    with pytest.raises(RunFailed, match=r"one of the 2 data workers died.*train\.workers"):
        next(iter(stream_of(packed, workers=2)))


def test_leaving_a_stream_ends_its_workers(packed: TokenisedCorpus) -> None:
    batches = iter(stream_of(packed, workers=2))
    next(batches)
    del batches
    assert not torch.multiprocessing.active_children()


def small_batch(**changes: Any) -> Batch:
    given = {
        "ids": torch.tensor([[1, 2, 3]]),
        "targets": torch.tensor([[IGNORE, 5, IGNORE]]),
        "visible": torch.tensor([[True, True, False]]),
        "sample_ids": torch.tensor([9]),
    }
    return Batch(**(given | changes))


def test_the_digest_is_the_sha256_of_all_contents() -> None:
    expected = hashlib.sha256()
    for name, shape, values in (
        ("ids", (1, 3), [1, 2, 3]),
        ("targets", (1, 3), [IGNORE, 5, IGNORE]),
        ("visible", (1, 3), [1, 1, 0]),
        ("sample_ids", (1,), [9]),
    ):
        expected.update(f"{name}{shape}".encode())
        expected.update(np.array(values, "<i8").tobytes())
    assert small_batch().digest() == expected.hexdigest()


def test_every_content_changes_the_digest() -> None:
    changed = [
        small_batch(ids=torch.tensor([[1, 2, 4]])),
        small_batch(targets=torch.tensor([[IGNORE, 6, IGNORE]])),
        small_batch(visible=torch.tensor([[True, True, True]])),
        small_batch(sample_ids=torch.tensor([8])),
        small_batch(documents=torch.tensor([[0, 0, 0]])),
        small_batch(segments=torch.tensor([[0, 0, 0]])),
        small_batch(lanes=torch.tensor([0])),
    ]
    all_digests = {batch.digest() for batch in [small_batch(), *changed]}
    assert len(all_digests) == len(changed) + 1


def test_a_batch_moves_whole() -> None:
    moved = small_batch(lanes=torch.tensor([0])).to("meta")
    assert moved.ids.device.type == moved.lanes.device.type == "meta"  # type: ignore[union-attr]
    assert moved.documents is None


@pytest.fixture
def held_out(make_corpus: Make, sentences: list[str]) -> Callable[..., TokenisedCorpus]:
    def make(**data: Any) -> TokenisedCorpus:
        return make_corpus(sentences * 3, validation_fraction=0.4, **data)

    return make


@pytest.mark.parametrize("layout", LAYOUTS)
def test_validation_targets_do_not_depend_on_the_batch_size(
    held_out: Make, layout: dict[str, Any]
) -> None:
    corpus = held_out(**layout)
    found = []
    for batch_size in (1, 3, 10_000):
        batches = validation_batches(corpus.validation, MlmConfig(), batch_size=batch_size, seed=4)
        assert batches.num_samples == len(corpus.validation)
        number = len(batches)
        listed = list(batches)
        assert len(listed) == number
        found.append(by_sample(iter(listed)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(corpus.validation)


def test_validation_masks_are_fixed_by_the_seed(held_out: Make) -> None:
    split = held_out().validation

    def listed(seed: int) -> list[str]:
        batches = validation_batches(split, MlmConfig(), batch_size=8, seed=seed)
        return [batch.digest() for batch in batches]

    assert listed(0) == listed(0)
    assert listed(0) != listed(1)


@pytest.mark.parametrize("cls", [False, True])
def test_longer_rows_have_the_same_targets(held_out: Make, cls: bool) -> None:
    split = held_out(cls=cls).validation
    targets: dict[int, list[int]] = {}
    tokens = {}
    for multiple in (1, 2, 4, 8):
        length = 16 * multiple
        batches = validation_batches(
            split, MlmConfig(), length=length, batch_size=64 // multiple, seed=0
        )
        listed = list(batches)
        assert all(batch.ids.shape[1] == length for batch in listed)
        tokens[multiple] = sum(batch.num_tokens - cls * len(batch.ids) for batch in listed)
        assert tokens[multiple] + batches.leftover_tokens == len(split.tokens)
        targets[multiple] = [t for b in listed for t in b.targets[b.selected].tolist()]
    shortest = min(len(found) for found in targets.values())
    assert shortest > 0.9 * len(targets[1])
    assert len({tuple(found[:shortest]) for found in targets.values()}) == 1
    assert min(tokens.values()) > 0.9 * max(tokens.values())


def test_validation_can_be_limited_to_the_first_tokens(held_out: Make) -> None:
    split = held_out(cls=False).validation
    for length in (16, 64):
        batches = validation_batches(
            split, MlmConfig(), length=length, batch_size=4, seed=0, limit_tokens=200
        )
        assert batches.num_samples == 200 // length
        assert batches.leftover_tokens == 200 % length


def test_validation_that_fills_no_row_is_an_error_with_both_numbers(held_out: Make) -> None:
    split = held_out().validation
    with pytest.raises(DataError, match=r"validation part has \d+ tokens .* one row of 100000"):
        validation_batches(split, MlmConfig(), length=100_000, batch_size=4, seed=0)


def test_validation_streams_keep_their_lanes(held_out: Make) -> None:
    split = held_out(order="streams").validation
    last: dict[int, int] = {}
    for batch in validation_batches(split, MlmConfig(), batch_size=5, seed=0):
        assert batch.lanes is not None
        for lane, sample in zip(batch.lanes.tolist(), batch.sample_ids.tolist(), strict=True):
            assert sample == last.get(lane, sample - 1) + 1
            last[lane] = sample
    assert sorted(last) == list(range(5))
