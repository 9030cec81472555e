"""ROUGE in any script, several references, bounded answers, and bootstrap intervals."""

import pytest

from corag.metrics import best_rouge, bootstrap, exact_match, rouge, token_f1
from corag.settings import MetricSettings

STEMMED, PLAIN = MetricSettings(stemming=True), MetricSettings(stemming=False)
ENGLISH = ("The agents activated 3 rerankers, quickly.", "An agent activates three rerankers and 3 stores quickly")


@pytest.mark.parametrize("settings", [STEMMED, PLAIN])
def test_english_scores_equal_those_of_the_library(settings):
    """On ASCII text our tokenizer changes nothing."""
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=settings.stemming).score(*ENGLISH)
    ours = rouge(*ENGLISH, settings)
    assert ours.rouge_1 == pytest.approx(theirs["rouge1"].fmeasure)
    assert ours.rouge_2 == pytest.approx(theirs["rouge2"].fmeasure)
    assert ours.rouge_l == pytest.approx(theirs["rougeL"].fmeasure)


@pytest.mark.parametrize(("settings", "score"), [(PLAIN, 0.25), (STEMMED, 1.0)])
def test_stemming_is_a_setting(settings, score):
    """EVL-03: the same pair scores 0.25 without stemming and 1 with it."""
    got = rouge("the agents activate reranking", "the agent activates rerankings", settings)
    assert got.rouge_l == pytest.approx(score)


def test_precision_is_of_the_answer_and_recall_of_the_reference():
    """EVL-04: one right word of five is precision 0.2 and recall 1."""
    got = rouge("paris", "the capital is paris france", PLAIN)
    assert (got.precision, got.recall) == pytest.approx((0.2, 1.0))


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ("夜茶市创立于1688年", "夜茶市创立于1715年"),
        ("東京タワーは赤い", "東京タワーは青い"),
        ("ตลาดเปิดตอนเช้า", "ตลาดปิดตอนเย็น"),
    ],
    ids=["Chinese", "Japanese", "Thai"],
)
def test_scripts_without_spaces_are_scored(same, other):
    """An identical answer scores 1, a contradicting one less, neither 0."""
    assert rouge(same, same, STEMMED).rouge_l == 1.0
    assert 0 < rouge(same, other, STEMMED).rouge_l < 1


def test_the_best_of_several_references_counts():
    """EVL-02: several references give the maximum; without a usable one there is no score."""
    assert best_rouge(["Paris", "City of Paris"], "the city of paris", PLAIN).rouge_l == pytest.approx(6 / 7)
    assert best_rouge([], "paris", PLAIN) is None
    assert best_rouge(["", " ?! "], "paris", PLAIN) is None


def test_an_empty_answer_scores_zero():
    """It is dropped nowhere and fails nothing (BAT-04)."""
    assert best_rouge(["Paris"], "", PLAIN).rouge_l == 0.0


def test_a_runaway_answer_is_compared_by_its_beginning():
    """EVL-05: 50,000 words are cut at the limit, and what stands before it still counts."""
    runaway = "paris " + "word " * 50_000
    bounded = MetricSettings(max_answer_characters=1000)
    assert rouge("paris", runaway, bounded) == rouge("paris", runaway[:1000], bounded)


def test_short_answers_are_compared_exactly_and_by_words():
    """Case and punctuation do not count; repeated words count once each."""
    assert exact_match(["Paris!"], "paris") == 1.0
    assert exact_match(["Paris"], "paris france") == 0.0
    assert token_f1(["the city of paris"], "paris paris") == pytest.approx(2 * 0.5 * 0.25 / 0.75)


def test_the_bootstrap_is_seeded_and_surrounds_the_mean():
    """The same seed gives the same interval; nothing to measure gives none."""
    values = [0.0, 0.2, 0.4, 0.9]
    first = bootstrap(values, seed=1)
    assert first == bootstrap(values, seed=1)
    assert first.mean == pytest.approx(0.375)
    assert first.low <= first.mean <= first.high
    assert bootstrap([], seed=1).n == 0


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    """Of 200 simulated samples with a known mean, 95 % intervals hold it in 88 to 99 %."""
    import numpy as np

    generator = np.random.default_rng(0)
    held = 0
    for seed in range(200):
        interval = bootstrap(generator.normal(0.5, 0.2, 40).tolist(), seed=seed, samples=300)
        held += interval.low <= 0.5 <= interval.high
    assert 0.88 <= held / 200 <= 0.99
