from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from corag.search import Problem, SearchFailure, SearchParameters, search_many
from tests.search_cases import by_scope, cases

PROBLEMS = st.lists(
    st.tuples(cases(), st.sampled_from("abc"), st.lists(st.integers(0, 12), min_size=1, max_size=3)), max_size=6
).map(
    lambda drawn: [
        Problem(scope, case.costs, case.parameters, tuple(checkpoints)) for case, scope, checkpoints in drawn
    ]
)
PARAMETERS = SearchParameters(budget=30, iterations=6)


@given(PROBLEMS)
@settings(deadline=None, max_examples=80)
def test_many_trees_in_lockstep_equal_one_after_the_other(problems) -> None:
    """Pooling the requests of all trees changes no result at any checkpoint."""
    assert search_many(problems, by_scope) == [search_many([problem], by_scope)[0] for problem in problems]


@given(PROBLEMS)
@settings(deadline=None, max_examples=80)
def test_a_scope_that_fails_ends_its_own_problems_only(problems) -> None:
    """The other scopes' results are those without the failure, and a failure carries the reason of its scope."""
    together = search_many(problems, lambda requests: by_scope(requests, broken="b"))
    for problem, found, calm in zip(problems, together, search_many(problems, by_scope), strict=True):
        if isinstance(found, SearchFailure):
            assert problem.scope == "b"
            assert found.reason == "no b"
        else:
            assert found == calm


def test_a_failure_says_how_many_orders_had_been_scored() -> None:
    """A scope that fails at its second step has its single candidates scored."""
    problems = [Problem(scope, (10, 10, 10), PARAMETERS, (6,)) for scope in "ab"]
    fine, failed = search_many(problems, lambda requests: by_scope(requests, broken="b"))
    assert failed == SearchFailure("no b", 3)
    assert not isinstance(fine, SearchFailure)
    assert fine[6].iterations == 6


@given(PROBLEMS)
@settings(deadline=None, max_examples=60)
def test_no_order_of_a_scope_is_asked_for_twice(problems) -> None:
    """Trees of one scope share every score, so that a sweep costs its distinct orders."""
    asked = []

    def noting(requests):
        asked.extend(requests)
        return by_scope(requests)

    search_many(problems, noting)
    assert len(asked) == len(set(asked))


def test_each_step_is_one_batch_for_all_trees() -> None:
    """As many calls are made as the longest tree has iterations, whatever the number of trees."""
    calls = []

    def noting(requests):
        calls.append(len(requests))
        return by_scope(requests)

    search_many([Problem(scope, (10, 10, 10), replace(PARAMETERS), (4,)) for scope in "abcde"], noting)
    assert len(calls) == 4
    assert calls[0] == 15
