"""Checks of a mechanism's options: strict, frozen, kept whole between file and run."""

import json

from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.testing.expect import ensure
from posattn.testing.mechanism_case import MechanismCase


def check_options_survive_a_round_trip(case: MechanismCase) -> None:
    """Options written as JSON inside an encoder and read again are the same, defaults included.

    If not: the recipe saved with a run is not the one that ran.
    """
    config = case.encoder_config()
    text = config.model_dump_json()
    back = EncoderConfig.model_validate_json(text)
    ensure(back == config, f"options changed on the way through JSON: {text}")
    written = json.loads(text)["mechanism"][0]
    for name, value in case.config:
        ensure(name in written, f"option '{name}' = {value!r} is missing from the saved recipe")


def check_defaults_need_no_options(case: MechanismCase) -> None:
    """The bare name is a whole mechanism, or is refused in favour of an option that the error names.

    If not: `mechanism: NAME` cannot be written; give each option a default.
    """
    try:
        config = case.encoder_config(mechanism=case.name)
    except ValidationError as error:
        named = any(f"{option}:" in str(error) for option in type(case.config).model_fields)
        ensure(named, f"'{case.name}' alone is refused, but no option is named: {error}")
        return
    ensure(config.mechanism[0].name == case.name, f"'{case.name}' alone is not enough")


def check_unknown_options_are_refused(case: MechanismCase) -> None:
    """An option that does not exist is an error that names it.

    If not: a misspelt option is ignored and the default runs instead.
    """
    unknown = "option_that_no_mechanism_has"
    try:
        type(case.config).model_validate({**case.config.model_dump(), unknown: 1})
    except ValidationError as error:
        ensure(unknown in str(error), f"the error does not name the unknown option: {error}")
        return
    raise AssertionError("an unknown option is accepted; derive the config from MechanismConfig")


def check_options_are_frozen(case: MechanismCase) -> None:
    """No option can be changed once it is read.

    If not: options can change after they were recorded.
    """
    for name, value in case.config:
        try:
            setattr(case.config, name, value)
        except ValidationError:
            continue
        raise AssertionError(f"option '{name}' can be reassigned")
