"""Every exercise against plain loops over rows of symbols; draws are read off what it poses."""

import numpy as np
import pytest

from posattn.errors import DataError
from posattn.training.masking import IGNORE
from posattn.training.objectives import objectives
from posattn.training.text.draws import fold
from posattn.training.text.vocabulary import Vocabulary

LENGTH, ROWS, FIRST = 32, 6, 5
SEP, MASK, CLS = 3, 4, 2
VOCABULARY = Vocabulary(50, 0, 1, CLS, SEP, MASK, np.arange(FIRST), np.arange(FIRST, 50))
NUM_SYMBOLS = 45


def posed(name, rows=ROWS, length=LENGTH, seed=0, cls=False, **options):
    """Return (symbols before, what is seen, answers, positions); specials are negative, no target -100."""
    objective = objectives.get(name)(objectives.get(name).Config(name=name, **options), VOCABULARY)
    rng = np.random.default_rng(seed)
    ids = rng.integers(FIRST, 50, (rows, length))
    if cls:
        ids[:, 0] = CLS
    keys = fold(seed, np.arange(rows))
    counters = np.broadcast_to(np.arange(length), ids.shape)
    visible = np.ones_like(ids, dtype=bool)
    seen, targets = objective.apply(ids, visible, keys, counters)
    places = objective.positions(ids, visible, keys, counters)
    return ids - FIRST, seen - FIRST, np.where(targets == IGNORE, IGNORE, targets - FIRST), places


@pytest.mark.parametrize("offset", [3, -2])
def test_offset_asks_for_the_symbol_at_a_fixed_distance(offset):
    before, seen, answers, places = posed("offset", offset=offset)
    assert places is None
    assert (seen == before).all()
    for row in range(ROWS):
        for i in range(LENGTH):
            inside = 0 <= i - offset < LENGTH
            assert answers[row, i] == (before[row, i - offset] if inside else IGNORE)


def test_offset_by_symbol_looks_as_far_as_the_symbol_says():
    before, seen, answers, _ = posed("offset_by_symbol", reaches=8)
    assert (seen == before).all()
    for row in range(ROWS):
        for i in range(LENGTH):
            source = i - 1 - before[row, i] % 8
            assert answers[row, i] == (before[row, source] if source >= 0 else IGNORE)


def test_exactly_one_symbol_points_at_each_place_and_its_payload_is_the_answer():
    reach, payloads = 4, 5
    before, seen, answers, _ = posed("pointed", rows=20, reach=reach, payloads=payloads)
    displacements = seen % (2 * reach + 1) - reach
    assert (seen // (2 * reach + 1) == before % payloads).all()
    assert set(np.unique(displacements)) == set(range(-reach, reach + 1))
    for row in range(20):
        targets = [j + displacements[row, j] for j in range(LENGTH)]
        assert sorted(targets) == list(range(LENGTH))
        for j, target in enumerate(targets):
            assert answers[row, target] == before[row, j] % payloads


def test_order_labels_the_first_mask_one_and_the_second_two():
    _, seen, answers, _ = posed("order", rows=40)
    firsts = set()
    for row in range(40):
        masks = [i for i in range(LENGTH) if seen[row, i] == MASK - FIRST]
        assert [answers[row, i] for i in masks] == [1, 2]
        others = [i for i in range(LENGTH) if i not in masks]
        assert all(seen[row, i] == 0 and answers[row, i] == IGNORE for i in others)
        firsts.add(masks[0])
    assert len(firsts) > 8


@pytest.mark.parametrize("edges", ["visible", "hidden"])
def test_twin_masks_have_the_same_neighbours_and_the_number_of_their_period(edges):
    period, classes = 4, 3
    before, seen, answers, places = posed(
        "twin_masks", rows=60, period=period, classes=classes, edges=edges
    )
    if edges == "visible":
        assert places is None
        places = np.tile(np.arange(LENGTH), (60, 1))
    else:
        assert set(places[:, 0]) == set(range(period * classes))
    for row in range(60):
        one, other = (i for i in range(LENGTH) if seen[row, i] == MASK - FIRST)
        assert one != other
        assert (other - one) % period == 0
        for i in range(LENGTH):
            if i in (one, other):
                assert answers[row, i] == places[row, i] // period % classes
            else:
                assert (seen[row, i], answers[row, i]) == (before[row, i % period], IGNORE)
        assert (np.diff(places[row]) == 1).all()


def test_hidden_edges_leave_every_answer_equally_likely_wherever_the_mask_is():
    _, _, answers, places = posed("twin_masks", rows=4000, edges="hidden", period=2, classes=2)
    for column in (0, 7, 20):
        found = answers[answers[:, column] != IGNORE, column]
        assert abs(found.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(found))
    assert places.min() == 0


@pytest.mark.parametrize("cell", [1, 4])
def test_index_asks_where_a_place_is(cell):
    before, seen, answers, _ = posed("index", cell=cell)
    assert (seen == before).all()
    assert answers.tolist() == [[i // cell for i in range(LENGTH)]] * ROWS


def test_reverse_asks_for_the_row_backwards():
    before, seen, answers, _ = posed("reverse")
    assert (seen == before).all()
    assert answers.tolist() == [row[::-1] for row in before.tolist()]


def test_copy_repeats_a_string_of_variable_length():
    before, seen, answers, _ = posed("copy", rows=60)
    sizes = set()
    for row in range(60):
        separators = [i for i in range(LENGTH) if seen[row, i] == SEP - FIRST]
        n = separators[0]
        sizes.add(n)
        wanted = [*before[row, :n], SEP - FIRST, *[MASK - FIRST] * n]
        wanted += [SEP - FIRST] * (LENGTH - 2 * n - 1)
        assert seen[row].tolist() == wanted
        asked = [IGNORE] * (n + 1) + before[row, :n].tolist() + [IGNORE] * (LENGTH - 2 * n - 1)
        assert answers[row].tolist() == asked
    assert sizes == set(range(8, 16))


def test_longer_copies_are_longer_than_any_before():
    _, seen, _, _ = posed("copy", rows=60, length=2 * LENGTH)
    sizes = [row.index(SEP - FIRST) for row in seen.tolist()]
    assert min(sizes) >= 16
    assert max(sizes) <= 31


def test_needle_asks_for_what_followed_each_key():
    keys = 3
    _, seen, answers, _ = posed("needle", rows=40, keys=keys)
    for row in range(40):
        hay, questions = seen[row, :-keys].tolist(), seen[row, -keys:].tolist()
        assert sorted(questions) == list(range(keys))
        for place, key in enumerate(questions):
            assert hay.count(key) == 1
            assert answers[row, LENGTH - keys + place] == hay[hay.index(key) + 1] >= keys
        assert (answers[row, :-keys] == IGNORE).all()


NAMES = sorted(
    name for name in objectives if objectives.get(name).__module__.startswith("posattn.training.ex")
)


@pytest.mark.parametrize("name", NAMES)
def test_targets_are_as_many_as_stated(name):
    config = objectives.get(name).Config(name=name)
    _, _, answers, _ = posed(name, rows=300)
    assert (answers != IGNORE).sum(1).mean() == pytest.approx(config.targets_in(LENGTH), abs=0.3)
    assert name in config.card()["objective"]


@pytest.mark.parametrize("name", NAMES)
def test_cls_stays_in_front_and_is_never_asked_about(name):
    _, seen, answers, places = posed(name, cls=True)
    assert (seen[:, 0] == CLS - FIRST).all()
    assert (answers[:, 0] == IGNORE).all()
    assert (answers[:, 1:] != IGNORE).any()
    assert places is None


def test_given_positions_put_cls_just_before_the_text():
    *_, places = posed("twin_masks", cls=True, edges="hidden")
    assert (np.diff(places, axis=1) == 1).all()
    assert places.min() >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "index", "length": 60}, "needs 60 symbols in rows of 60, .* has 45"),
        ({"name": "twin_masks", "length": 8, "period": 8}, "needs rows of 16 symbols"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(options, message):
    with pytest.raises(DataError, match=message):
        posed(**options)


def test_padded_rows_are_refused():
    objective = objectives.get("reverse")(objectives.get("reverse").Config(), VOCABULARY)
    ids = np.full((1, 4), FIRST)
    with pytest.raises(DataError, match="layout: packed"):
        objective.apply(ids, ids == 0, fold(0, np.arange(1)), np.arange(4)[None])


def test_an_offset_of_nothing_is_refused():
    with pytest.raises(ValueError, match="offset 0"):
        objectives.get("offset").Config(offset=0)
