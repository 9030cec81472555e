"""Rerankers and signals on the packaged models: right scores, whatever the batch, and honest about cuts."""

import math
import time

import numpy as np
import pytest

from corag.embedders.minilm import MiniLM
from corag.errors import ConfigError, ModelError
from corag.packaged import minilm_folder
from corag.rerankers import load_reranker, score
from corag.rerankers.base import RecentlyUsed, joined
from corag.rerankers.lexical import LexicalReranker
from corag.rerankers.likelihood import LikelihoodReranker
from corag.settings import RerankerSettings

CORPUS = [
    "The Orvane lighthouse was built in 1874 by the engineer Petra Halloway on a granite reef.",
    "The Sellin bridge carries the coastal railway and is 312 metres long.",
    "Marsh orchids flower in June where the soil stays wet.",
    "The bakery of Corven sells rye bread on Fridays.",
]
QUERY = "Who built the Orvane lighthouse?"
SIGNALS = ("dense", "late-interaction", "static", "lexical")


def fail():
    """Stands for a part that must not be asked for."""
    raise AssertionError("this part is not needed")


@pytest.fixture(scope="module")
def minilm():
    """The packaged embedder."""
    return MiniLM(None, 512, 32)


@pytest.fixture(scope="module")
def signals(minilm):
    """The embedded signals, by kind."""
    return {
        kind: load_reranker(
            RerankerSettings(name=kind, kind=kind), embedder=lambda: minilm, generator=fail, corpus=lambda: CORPUS
        )
        for kind in SIGNALS
    }


@pytest.mark.parametrize("kind", SIGNALS)
def test_the_text_that_answers_scores_best(signals, kind):
    """Each signal ranks the text with the answer first, and scores come in the order of the texts."""
    scores = score(signals[kind], QUERY, CORPUS)
    assert max(range(4), key=scores.__getitem__) == 0
    backwards = score(signals[kind], QUERY, CORPUS[::-1])
    assert backwards[::-1] == pytest.approx(scores, abs=2e-6)


@pytest.mark.parametrize("kind", SIGNALS)
def test_scores_do_not_depend_on_the_batch(signals, kind):
    """A pair scores the same alone, in a batch, and beside a twin of the same text."""
    pairs = [
        (QUERY, (CORPUS[1], CORPUS[0])),
        (QUERY, (CORPUS[0],)),
        ("rye bread?", (CORPUS[3],)),
        (QUERY, (CORPUS[0],)),
    ]
    together = signals[kind].score_pairs(pairs)
    alone = [signals[kind].score_pairs([pair])[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=2e-6)
    assert together[1] == together[3]


@pytest.mark.parametrize("kind", SIGNALS)
def test_one_candidate_and_none(signals, kind):
    """RER-01: one candidate gives one finite score, and no candidate gives no score."""
    (only,) = score(signals[kind], QUERY, CORPUS[:1])
    assert math.isfinite(only)
    assert score(signals[kind], QUERY, []) == []


@pytest.mark.parametrize("kind", SIGNALS)
def test_odd_texts_do_not_crash(signals, kind):
    """Lone surrogates, blanks and a very long question give one score a pair."""
    long_question = " ".join(f"word{number}" for number in range(600))
    pairs = [("x\ud835", ("a\ud800b",)), (QUERY, (" ",)), (long_question, (CORPUS[0],)), (long_question, (CORPUS[2],))]
    scores = signals[kind].score_pairs(pairs)
    assert len(scores) == 4


@pytest.mark.parametrize("kind", SIGNALS)
def test_unit_scores_keep_the_order(signals, kind):
    """`to_unit` maps to [0, 1] and never turns two scores around; NaN stays NaN."""
    scores = sorted(score(signals[kind], QUERY, CORPUS))
    units = [signals[kind].to_unit(one) for one in scores]
    assert units == sorted(units)
    assert all(0 <= unit <= 1 for unit in units)
    assert math.isnan(signals[kind].to_unit(math.nan))


def test_identities_tell_signals_apart(signals):
    """No two signals share an identity, and each names its model's revision or its corpus."""
    assert len({signal.identity for signal in signals.values()}) == len(SIGNALS)
    other = LexicalReranker("lexical", lambda: CORPUS[:2], 32)
    assert other.identity != signals["lexical"].identity
    assert LexicalReranker("other name", lambda: CORPUS, 32).identity == signals["lexical"].identity


def test_dense_is_the_cosine_of_query_and_joined_text(signals, minilm):
    """The dense score is the cosine of the embedder's own vectors."""
    texts = (CORPUS[2], CORPUS[0])
    query, text = minilm.embed([QUERY, joined(texts)])
    assert signals["dense"].score_pairs([(QUERY, texts)]) == pytest.approx([float(query @ text)], abs=2e-6)


def test_dense_sees_the_order(signals):
    """The two orders of two chunks get different dense scores."""
    one, other = signals["dense"].score_pairs([(QUERY, (CORPUS[0], CORPUS[1])), (QUERY, (CORPUS[1], CORPUS[0]))])
    assert one != other


def test_long_texts_are_counted_as_cut(minilm):
    """RER-03: pairs beyond the model's length are counted, and only those."""
    reranker = load_reranker(
        RerankerSettings(name="d", kind="dense", max_length=32), embedder=fail, generator=fail, corpus=fail
    )
    reranker.score_pairs([(QUERY, (CORPUS[0],)), (QUERY, tuple(CORPUS))])
    assert reranker.truncated == 1


def test_late_interaction_is_maxsim(signals, minilm):
    """The score is the mean over query tokens of the greatest cosine with a token of any chunk."""
    query, first, second = minilm.token_vectors([QUERY, CORPUS[0], CORPUS[2]])
    expected = np.max(query @ np.concatenate([first, second]).T, axis=1).mean()
    (found,) = signals["late-interaction"].score_pairs([(QUERY, (CORPUS[0], CORPUS[2]))])
    assert found == pytest.approx(float(expected), abs=2e-3)


def test_late_interaction_ignores_order_and_never_falls(signals):
    """A permutation scores the same; a further chunk does not lower the score."""
    one, other, more = signals["late-interaction"].score_pairs(
        [(QUERY, (CORPUS[0], CORPUS[1])), (QUERY, (CORPUS[1], CORPUS[0])), (QUERY, tuple(CORPUS))]
    )
    assert one == other
    assert more >= one


def test_late_interaction_of_known_chunks_is_cheap(signals):
    """Orders of chunks that were seen before cost no model call: thousands a second."""
    pairs = [(QUERY, (CORPUS[a], CORPUS[b])) for a in range(4) for b in range(4) if a != b] * 100
    signals["late-interaction"].score_pairs(pairs)
    start = time.perf_counter()
    signals["late-interaction"].score_pairs(pairs)
    assert time.perf_counter() - start < 0.5


def test_late_interaction_without_tokens_is_nan(signals):
    """A chunk or a query without any token scores NaN, not a number that might win."""
    assert all(map(math.isnan, signals["late-interaction"].score_pairs([(QUERY, ("",)), ("", (CORPUS[0],))])))


def test_lexical_agrees_with_the_library(signals):
    """On the library's own documents the score is the library's."""
    from rank_bm25 import BM25Plus

    from corag.words import words

    expected = BM25Plus([words(text) for text in CORPUS]).get_scores(words(QUERY))
    assert score(signals["lexical"], QUERY, CORPUS) == pytest.approx(list(expected))


def test_lexical_counts_the_joined_text_as_one(signals):
    """The chunks of an order score as the one text that they join to."""
    order, text = signals["lexical"].score_pairs(
        [(QUERY, (CORPUS[1], CORPUS[0])), (QUERY, (joined((CORPUS[1], CORPUS[0])),))]
    )
    assert order == pytest.approx(text)


def test_lexical_works_on_a_corpus_of_one_chunk_or_none():
    """With one chunk in the corpus a matching text still beats a foreign one; an empty corpus scores 0."""
    reranker = LexicalReranker("lexical", lambda: CORPUS[:1], 32)
    match, foreign = score(reranker, QUERY, CORPUS[:2])
    assert match > foreign
    assert score(LexicalReranker("lexical", lambda: [], 32), QUERY, CORPUS[:1]) == [0.0]


def test_lexical_reads_the_corpus_once_and_late():
    """The corpus is asked for at the first use, and never again."""
    asked = []
    reranker = LexicalReranker("lexical", lambda: asked.append(1) or CORPUS, 32)
    assert asked == []
    score(reranker, QUERY, CORPUS)
    assert reranker.identity
    assert asked == [1]


class WordLikelihood:
    """Stands for a language model: the log-probability is minus the share of query words that the text lacks."""

    weights = "fake@1"
    context_length = 100

    def continuation_log_probabilities(self, head, texts, tail, continuations, max_length, batch_size):
        return [
            (-float(sum(word not in text for word in query.split())), len(text) > max_length)
            for text, query in zip(texts, continuations, strict=True)
        ]


def test_likelihood_passes_on_the_probability_of_the_question():
    """The score is the model's; cut texts are counted; e^score is the unit score."""
    reranker = LikelihoodReranker("l", WordLikelihood(), None, 4)
    assert reranker.score_pairs([("rye bread", ("rye bread",)), ("rye bread", ("x" * 101,))]) == [0.0, -2.0]
    assert reranker.truncated == 1
    assert reranker.to_unit(0.0) == 1.0
    assert reranker.to_unit(-2.0) == pytest.approx(math.exp(-2))


def test_kinds_without_a_model_refuse_one(minilm):
    """A model named for a signal that has none is a mistake, not ignored."""
    with pytest.raises(ConfigError, match="takes no model"):
        load_reranker(RerankerSettings(name="l", kind="lexical", model="x"), embedder=fail, generator=fail, corpus=fail)


def test_likelihood_needs_a_model_in_this_process():
    """A generator behind a server cannot serve the likelihood signal, and the message says what to do."""
    with pytest.raises(ModelError, match="name a model folder"):
        load_reranker(
            RerankerSettings(name="l", kind="likelihood"), embedder=fail, generator=lambda: object(), corpus=fail
        )


def test_recently_used_forgets_the_oldest():
    """Past its capacity the cache drops what was not used for longest, and always holds the newest."""
    cache = RecentlyUsed(3)
    for key in "abc":
        cache.put(key, key)
    assert cache.get("a") == "a"
    cache.put("d", "d")
    assert [cache.get(key) for key in "abcd"] == ["a", None, "c", "d"]
    cache.put("huge", "huge", size=10)
    assert cache.get("huge") == "huge"
    assert len(cache) == 1


# --- cross-encoders: tiny ones made on the spot, with random weights and MiniLM's vocabulary ---


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    """A folder with a one-label BERT of 96 positions."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("tiny-cross-encoder")
    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(str(minilm_folder()))
    tokenizer.model_max_length = 96
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=96,
        num_labels=1,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def load_flag(folder, **settings):
    """The cross-encoder in `folder`."""
    return load_reranker(
        RerankerSettings.model_validate({"name": "tiny", "kind": "flag", "model": str(folder), **settings}),
        embedder=fail,
        generator=fail,
        corpus=fail,
    )


def test_flag_gives_the_logits_of_the_cross_encoder(cross_encoder):
    """Scores are the model's own raw logits, in the order of the pairs, for any number of pairs."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reranker = load_flag(cross_encoder, batch_pairs=2)
    orders = [(CORPUS[0],), (CORPUS[1], CORPUS[0]), (CORPUS[0], CORPUS[1]), (CORPUS[2],), (CORPUS[3], CORPUS[2])]
    tokenizer = AutoTokenizer.from_pretrained(str(cross_encoder))
    model = AutoModelForSequenceClassification.from_pretrained(str(cross_encoder)).eval()
    with torch.inference_mode():
        expected = [
            float(model(**tokenizer(QUERY, joined(order), return_tensors="pt")).logits[0, 0]) for order in orders
        ]
    assert reranker.score_pairs([(QUERY, order) for order in orders]) == pytest.approx(expected, abs=1e-4)
    assert reranker.truncated == 0
    assert reranker.to_unit(0.0) == 0.5
    assert reranker.to_unit(-1000.0) == 0.0


def test_flag_reads_up_to_the_models_own_length(cross_encoder):
    """RER-03: the limit is the model's positions, not the library's 512; longer pairs are cut and counted."""
    reranker = load_flag(cross_encoder)
    assert reranker.max_length == 96
    long_question = " ".join(["lighthouse"] * 600)
    scores = reranker.score_pairs(
        [
            (QUERY, tuple(CORPUS) * 4),
            (QUERY, (CORPUS[0],)),
            (long_question, (CORPUS[0],)),
            (long_question, (CORPUS[1],)),
        ]
    )
    assert reranker.truncated == 3
    assert scores[2] != scores[3]


def test_flag_refuses_more_than_the_model_has(cross_encoder):
    """RER-03: a configured length beyond the model's positions is refused with both numbers."""
    with pytest.raises(ConfigError, match=r"max_length \(512\) exceeds the 96 tokens"):
        load_flag(cross_encoder, max_length=512)


def test_flag_draws_no_bars(cross_encoder, capfd):
    """Nothing reaches the terminal, however many pairs are scored."""
    reranker = load_flag(cross_encoder, batch_pairs=8)
    reranker.score_pairs([(QUERY, (text,)) for text in CORPUS * 10])
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_flag_without_a_model_or_folder_says_what_to_do(tmp_path):
    """No model, a missing folder and an unknown hub name each end in one line, within seconds."""
    with pytest.raises(ConfigError, match=r"rerankers\.tiny\.model is empty"):
        load_reranker(RerankerSettings(name="tiny", kind="flag"), embedder=fail, generator=fail, corpus=fail)
    start = time.perf_counter()
    for model in (str(tmp_path / "absent"), "nobody/no-such-reranker-model"):
        with pytest.raises(ModelError) as caught:
            load_flag(model)
        assert model in str(caught.value)
        assert "\n" not in str(caught.value)
    assert time.perf_counter() - start < 60


def test_flag_refuses_an_embedder_in_place_of_a_cross_encoder():
    """A folder with more than one label (any embedder loads with two) is refused."""
    with pytest.raises(ModelError, match="2 labels"):
        load_flag(minilm_folder())


def test_flag_llm_scores_with_a_causal_model(tmp_path):
    """FlagLLMReranker loads a tiny Llama; scores are finite, tell texts apart, and do not depend on the batch."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(str(minilm_folder()))
    tokenizer.save_pretrained(tmp_path)
    config = LlamaConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    reranker = load_flag(tmp_path, kind="flag-llm", batch_pairs=2)
    together = score(reranker, QUERY, CORPUS)
    assert len(set(together)) == 4
    assert [score(reranker, QUERY, [text])[0] for text in CORPUS] == pytest.approx(together, abs=1e-4)
    assert reranker.max_length < 512
