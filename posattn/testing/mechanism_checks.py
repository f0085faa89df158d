"""The conformance suite of mechanisms: which checks apply to which, and how to run them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from posattn.testing import (
    content_checks,
    number_checks,
    option_checks,
    position_checks,
    relation_checks,
    state_checks,
    statement_checks,
)
from posattn.testing.checks import Check, CheckResult, bind, run_all
from posattn.testing.mechanism_case import MechanismCase

MechanismCheck: TypeAlias = Callable[[MechanismCase], None]

ALWAYS: tuple[MechanismCheck, ...] = (
    option_checks.check_options_survive_a_round_trip,
    option_checks.check_defaults_need_no_options,
    option_checks.check_unknown_options_are_refused,
    option_checks.check_options_are_frozen,
    statement_checks.check_the_name_is_the_registered_one,
    statement_checks.check_active_hooks_are_the_declared_ones,
    statement_checks.check_rows_do_not_depend_on_other_rows,
    statement_checks.check_positions_may_be_any_integers,
    statement_checks.check_queries_that_see_nothing_give_zeros,
    statement_checks.check_the_card_and_the_cost_are_stated,
    position_checks.check_padding_changes_nothing,
    position_checks.check_padding_beside_real_tokens_in_one_batch,
    position_checks.check_packed_documents_do_not_meet,
    position_checks.check_texts_without_padding_are_what_they_are_in_rows,
    number_checks.check_backends_equal_eager,
    number_checks.check_every_dtype_is_kept,
    number_checks.check_autocast_is_harmless,
    number_checks.check_every_parameter_learns,
    number_checks.check_short_and_odd_lengths_run,
    number_checks.check_the_longest_sequence_is_enforced,
    state_checks.check_a_long_sequence_does_not_change_a_short_one,
    state_checks.check_positions_are_not_remembered,
    state_checks.check_instances_do_not_share_state,
    state_checks.check_evaluation_sees_changed_weights,
    state_checks.check_copies_are_whole,
    state_checks.check_state_does_not_depend_on_length,
    state_checks.check_first_values_come_from_seed_and_name,
    state_checks.check_decoding_selected_places_equals_decoding_all,
    content_checks.check_fresh_rows_are_declared,
)


def mechanism_checks(
    name: str, options: Mapping[str, Any] | None = None, **size: int
) -> list[Check]:
    """Return every check that the traits of a mechanism with these options call for.

    `size` may set `hidden_size`, `num_heads` and `seed` where 32, 4 and 0 do not suit the mechanism.
    In a test module: `@pytest.mark.parametrize("check", mechanism_checks("mine"), ids=str)`.
    """
    case = MechanismCase(name, options or {}, **size)
    return [bind(check, case) for check in (*ALWAYS, *_promised(case))]


def check_mechanism(
    name: str, options: Mapping[str, Any] | None = None, **size: int
) -> list[CheckResult]:
    """Run all checks of a mechanism; raise one AssertionError that lists every failure, if any."""
    shown = f" with {dict(options)}" if options else ""
    return run_all(f"mechanism '{name}'{shown}", mechanism_checks(name, options, **size))


def _promised(case: MechanismCase) -> list[MechanismCheck]:
    traits, position = case.traits, position_checks
    promised: list[MechanismCheck] = []
    if traits.adds_bias:
        promised.append(statement_checks.check_score_mod_equals_materialize)
        promised.append(statement_checks.check_terms_sum_to_the_bias)
    if traits.places:
        promised.append(state_checks.check_chance_moves_places_in_training_only)
    promised.append(
        position.check_position_reaches_the_output
        if traits.knows_position
        else position.check_the_encoder_is_permutation_equivariant
    )
    promised.append(
        position.check_translation_changes_nothing
        if traits.translation_invariant
        else position.check_translation_changes_the_output
    )
    promised.append(
        position.check_reversal_changes_the_output
        if traits.knows_direction
        else position.check_reversal_mirrors_the_output
    )
    promised.append(
        position.check_later_tokens_are_invisible
        if traits.causal
        else position.check_later_tokens_are_visible
    )
    promised.append(
        content_checks.check_position_meets_the_query
        if traits.reads_query
        else content_checks.check_position_ignores_the_query
    )
    promised.append(
        content_checks.check_position_meets_the_key
        if traits.reads_key
        else content_checks.check_position_ignores_the_key
    )
    if set(traits.relations) - {"line"}:
        promised.append(relation_checks.check_the_declared_relations_reach_the_output)
        promised.append(relation_checks.check_numbering_tokens_anew_permutes_the_output)
        promised.append(relation_checks.check_relations_of_selected_places_equal_those_of_all)
    return promised
