"""Models of posattn as folders for Hugging Face."""

from posattn.checkpoints.export.folder import Exported as Exported
from posattn.checkpoints.export.folder import export_run as export_run
