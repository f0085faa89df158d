import random

import numpy as np
import torch

from posattn.training.determinism import derive_seed, reproducible, seed_everything, seed_noise
from posattn.training.parameter_groups import tensor_digest
from tests.training.tiny_run import TinyModel


def draws() -> tuple[float, float, float]:
    return float(torch.rand(())), float(np.random.rand()), random.random()


def test_seeds_of_different_purposes_differ_and_do_not_run_into_each_other() -> None:
    seeds = [
        derive_seed(0, "init"),
        derive_seed(0, "dropout"),
        derive_seed(1, "init"),
        derive_seed(0, "init", 1),
        derive_seed(0, "init", "1"),
        derive_seed(0, "dropout", 1, 11),
        derive_seed(0, "dropout", 11, 1),
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(0, "init") == seeds[0]


def test_noise_depends_on_seed_step_and_micro_batch_only() -> None:
    seed_noise(0, 5, 1)
    first = draws()
    torch.rand(100), np.random.rand(7), random.random()
    seed_noise(0, 5, 1)
    assert draws() == first
    for other in [(1, 5, 1), (0, 6, 1), (0, 5, 0)]:
        seed_noise(*other)
        assert all(a != b for a, b in zip(draws(), first, strict=True))


def test_a_model_built_twice_with_one_seed_is_the_same_and_another_with_another_seed() -> None:
    digests = []
    for seed in (1, 1, 2):
        seed_everything(seed, "build")
        digests.append([tensor_digest(p) for p in TinyModel().parameters()])
    assert digests[0] == digests[1]
    changed = [a != b for a, b in zip(digests[1], digests[2], strict=True)]
    assert sum(changed) >= 4, "every random parameter differs; norms start the same"


def test_the_process_is_left_as_it_was() -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    with reproducible(threads=2):
        assert torch.get_num_threads() == 2
        seed_everything(0, "build")
        torch.rand(5)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_more_threads_than_one_ask_for_deterministic_sums() -> None:
    with reproducible(threads=2):
        assert torch.are_deterministic_algorithms_enabled() == (not torch.cuda.is_available())
    with reproducible(threads=1):
        assert not torch.are_deterministic_algorithms_enabled()
