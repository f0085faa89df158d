"""Chance in a graph: the same numbers as one generator gives, in one step each."""

import torch

from posattn.mechanisms import Places
from posattn.mechanisms.chance import draw_seed, random_subsets, uniform


def test_uniform_numbers_are_those_that_one_generator_gives_draw_after_draw() -> None:
    generator = torch.Generator().manual_seed(7)
    one_by_one = [torch.rand(3, 5, generator=generator, dtype=torch.float64) for _ in range(2)]
    assert torch.equal(uniform(torch.tensor(7), 2, 3, 5), torch.stack(one_by_one))


def test_each_operation_is_told_right_to_the_compiler() -> None:
    positions, lengths = torch.tensor([[0, 1, 2], [0, 1, -1]]), torch.tensor([[3] * 3, [2] * 3])
    for operation, given in (
        (uniform, (torch.tensor(7), 2, 3, 5)),
        (random_subsets, (torch.tensor(7), positions, lengths, 9)),
    ):
        torch.library.opcheck(operation, given, test_utils=("test_schema", "test_faketensor"))


def test_a_seed_that_is_given_is_not_drawn_again() -> None:
    positions = torch.arange(3)[None]
    torch.manual_seed(5)
    expected = Places(positions).seed
    torch.manual_seed(5)
    places = Places(positions, drawn=draw_seed())
    before = torch.get_rng_state()
    assert places.seed == int(places.seed_tensor) == expected
    assert torch.equal(torch.get_rng_state(), before)
