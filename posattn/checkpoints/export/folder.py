"""`export_run`: a run, or an imported folder, as a folder for Hugging Face."""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from posattn.checkpoints.export.check import TOLERANCE, largest_difference
from posattn.checkpoints.export.facts import RunFacts, run_facts
from posattn.checkpoints.export.home import Home, Homeless, find_home
from posattn.checkpoints.export.model_card import model_card
from posattn.checkpoints.export.own_format import MODELING, MODELING_TEXT, own_config
from posattn.checkpoints.export.sentence_files import sentence_files
from posattn.checkpoints.export.tokenizer_files import special_ids, tokenizer_files
from posattn.checkpoints.loading import from_pretrained
from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.writing import check_target, write_folder
from posattn.encoder.tasks import TaskModel
from posattn.errors import CheckpointError
from posattn.training.durable import TEMPORARY, replace_folder, write_and_sync, writing


@dataclass(frozen=True)
class Exported:
    """What was written: the class that loads it, and how far its outputs are from ours, by length.

    `reasons` say why no class of transformers computes the model, where that is so.
    """

    architecture: str
    needs_posattn: bool
    differences: dict[int, float]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return asdict(self)


def export_run(run: str | Path, out: str | Path, *, encoder_only: bool = False) -> Exported:
    """Write a run's model as `AutoModel.from_pretrained` loads it; return what was written.

    Where a class of transformers computes the same, the folder needs no posattn: outputs are compared, and
    nothing is written if they differ by more than 1e-5, or if reading the folder again gives other
    weights. Otherwise the folder is posattn's own, with a file through which AutoModel finds it.
    `encoder_only` leaves decoder and heads behind.
    """
    out = Path(out).absolute()
    check_target(out)
    facts = run_facts(Path(run))
    made = from_pretrained(facts.model)
    if encoder_only:
        made = replace(made, masked_lm=None, tasks=TaskModel(made.encoder, {}).eval())
    home = find_home(made, _config_facts(made))
    temporary = out.with_name(f"{TEMPORARY}{out.name}")
    with writing(out):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            exported = _write(home, made, temporary)
            files = {**tokenizer_files(made), **sentence_files(made)}
            for name, content in {**files, **_card(facts, made, exported)}.items():
                (temporary / name).parent.mkdir(exist_ok=True)
                text = content if isinstance(content, str) else json.dumps(content, indent=2)
                write_and_sync(temporary / name, text.encode())
            if isinstance(home, Home):
                _check_round_trip(made, temporary)
            replace_folder(temporary, out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return exported


def _card(facts: RunFacts, made: Pretrained, exported: Exported) -> dict[str, str]:
    way = None if not exported.needs_posattn else "posattn"
    return {"README.md": model_card(facts, made, exported.architecture, way, exported.notes)}


def _config_facts(made: Pretrained) -> dict[str, Any]:
    """Return what config.json says beside the architecture."""
    labels = made.report.labels
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    heads = made.heads().values()
    counts = [head.num_labels for head in heads if hasattr(head, "num_labels")]
    numbers = {"num_labels": counts[0]} if counts and not labels else {}
    return {**named, **numbers, **special_ids(made)}


def _write(home: Home | Homeless, made: Pretrained, folder: Path) -> Exported:
    if isinstance(home, Homeless):
        write_folder(made, folder)
        config = own_config(made)
        write_and_sync(folder / "config.json", json.dumps(config, indent=2).encode())
        write_and_sync(folder / MODELING, MODELING_TEXT.encode())
        return Exported(config["architectures"][0], True, {}, home.reasons, made.report.notes)
    differences = largest_difference(home.model, made)
    if not max(differences.values()) <= TOLERANCE:
        raise CheckpointError(
            f"{home.architecture} of transformers has the same options and weights, and still gives other "
            f"outputs (largest difference by length: {differences}, allowed {TOLERANCE}); nothing was "
            "written. DeBERTa v2 buckets distances past max_distance otherwise there: for that, lower "
            "data.max_length, or train with buckets.beyond: growing"
        )
    home.model.save_pretrained(folder)
    return Exported(home.architecture, False, differences, (), home.notes)


def _check_round_trip(made: Pretrained, folder: Path) -> None:
    again, ours = from_pretrained(folder).tensors(), made.tensors()
    changed = [
        name for name in ours if name not in again or not torch.equal(again[name], ours[name])
    ]
    if changed:
        raise CheckpointError(f"reading the export again changes {', '.join(changed[:8])}")
