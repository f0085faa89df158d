"""Heads for tasks: a text, its tokens, a span, a choice among texts, or a vector."""

from posattn.encoder.tasks.base import AnyTaskConfig as AnyTaskConfig
from posattn.encoder.tasks.base import TaskConfig as TaskConfig
from posattn.encoder.tasks.base import TaskHead as TaskHead
from posattn.encoder.tasks.base import TaskOutput as TaskOutput
from posattn.encoder.tasks.base import tasks as tasks
from posattn.encoder.tasks.model import TaskModel as TaskModel
from posattn.encoder.tasks.texts import ChoiceHead as ChoiceHead
from posattn.encoder.tasks.texts import SequenceHead as SequenceHead
from posattn.encoder.tasks.tokens import SpanHead as SpanHead
from posattn.encoder.tasks.tokens import TokenHead as TokenHead
from posattn.encoder.tasks.vector import VectorHead as VectorHead
