"""Text in: corpora, tokenizers, and the token store that batches are cut from.

The registries are `posattn.training.text.corpora.corpora` and
`posattn.training.text.tokenizers.tokenizers`, the way in is `posattn.training.text.prepare.prepare`;
they are not repeated here, where they would hide their modules.
"""

from posattn.cache import cache_folder
from posattn.training.text.config import DataConfig
from posattn.training.text.corpora import Corpus, CorpusConfig, Source, SourceFile
from posattn.training.text.info import CorpusInfo, FileInfo, SplitInfo
from posattn.training.text.prepare import Split, TokenisedCorpus
from posattn.training.text.samples import Layout
from posattn.training.text.tokenizers import TextTokenizer, TokenizerConfig, TokenizerKind
from posattn.training.text.vocabulary import Vocabulary

__all__ = [
    "Corpus",
    "CorpusConfig",
    "CorpusInfo",
    "DataConfig",
    "FileInfo",
    "Layout",
    "Source",
    "SourceFile",
    "Split",
    "SplitInfo",
    "TextTokenizer",
    "TokenisedCorpus",
    "TokenizerConfig",
    "TokenizerKind",
    "Vocabulary",
    "cache_folder",
]
