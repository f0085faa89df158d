"""`posattn bench`: encoders timed on this machine, ours and other libraries', as the same functions."""

from posattn.bench.measure import run_bench as run_bench
from posattn.bench.page import write_figures as write_figures
from posattn.bench.page import write_page as write_page
from posattn.bench.plan import BenchPlan as BenchPlan
from posattn.bench.plan import Cell as Cell
from posattn.bench.plan import ModelSize as ModelSize
from posattn.bench.presets import presets as presets
from posattn.bench.results import BenchResult as BenchResult
from posattn.bench.results import load_result as load_result
