"""The corpora: one file each."""

from posattn.training.text.corpora.base import Corpus, CorpusConfig, Source, SourceFile, corpora
from posattn.training.text.corpora.files import FilesCorpus
from posattn.training.text.corpora.hub import HubCorpus
from posattn.training.text.corpora.pydoc import PydocCorpus
from posattn.training.text.corpora.shakespeare import ShakespeareCorpus
from posattn.training.text.corpora.symbols import SymbolsCorpus

__all__ = [
    "Corpus",
    "CorpusConfig",
    "FilesCorpus",
    "HubCorpus",
    "PydocCorpus",
    "ShakespeareCorpus",
    "Source",
    "SourceFile",
    "SymbolsCorpus",
    "corpora",
]
