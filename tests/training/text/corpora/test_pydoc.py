from pydoc_data.topics import topics

from posattn.cache import silent
from posattn.training.text.corpora.pydoc import PydocConfig, PydocCorpus
from posattn.training.text.division import take_census


def test_each_help_topic_is_a_document() -> None:
    corpus = PydocCorpus(PydocConfig())
    census = take_census(corpus.pieces())
    assert census.documents() == len(topics)
    assert int(census.characters.sum()) == sum(len(text) for text in topics.values())


def test_the_source_names_the_licence_and_the_interpreter() -> None:
    corpus = PydocCorpus(PydocConfig())
    source = corpus.source(silent)
    assert source == corpus.source(silent)
    assert "PSF" in source.licence
    assert "Python" in source.origin
    assert len(source.files[0].sha256) == 64
