"""What attention consists of: named terms of the logits, layer by layer and head by head."""

from posattn.decomposition.inspection import Inspection as Inspection
from posattn.decomposition.inspection import Layer as Layer
from posattn.decomposition.inspection import inspect as inspect
from posattn.decomposition.record import Attention as Attention
from posattn.decomposition.record import Recording as Recording
from posattn.decomposition.record import record as record
from posattn.decomposition.shares import Profile as Profile
from posattn.decomposition.shares import Share as Share
from posattn.decomposition.shares import profiles as profiles
from posattn.decomposition.shares import shares as shares
from posattn.decomposition.terms import Terms as Terms
from posattn.decomposition.terms import terms_of as terms_of
