"""What a study, a suite or a run is doing, read from its files only, while others write them."""

from posattn.comparison.watching.find import FoundRun as FoundRun
from posattn.comparison.watching.find import find_runs as find_runs
from posattn.comparison.watching.snapshot import RunSnapshot as RunSnapshot
from posattn.comparison.watching.snapshot import Snapshot as Snapshot
from posattn.comparison.watching.watcher import Watcher as Watcher
