import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from benchmarks.synthetic import synthetic_benefit
from corag.search import SearchParameters, search
from corag.search.mcts import expand, select, update
from corag.search.tree import ROOT, PolicyTree
from tests.search_cases import Case, cases

SMALL = SearchParameters(budget=40, cost_coefficient=0.2, exploration_coefficient=1.0, selection="uct")


def test_the_utility_is_that_of_the_definition() -> None:
    """U(v) = V/N + c·sqrt(ln N/N(v)) − λ·cost/B with N of the whole tree, worked out by hand; +inf if unvisited."""
    tree = PolicyTree([10, 20], SMALL)
    update(tree, expand(tree, ROOT, [0.5, 0.4]))
    assert tree.utility(1) == pytest.approx(0.5 + math.sqrt(math.log(2)) - 0.05)
    assert tree.utility(2) == pytest.approx(0.4 + math.sqrt(math.log(2)) - 0.1)
    assert select(tree) == 1
    update(tree, expand(tree, 1, [0.7]))
    assert tree.utility(1) == pytest.approx((0.5 + 0.7) / 2 + math.sqrt(math.log(3) / 2) - 0.05)
    assert tree.utility(2) == pytest.approx(0.4 + math.sqrt(math.log(3)) - 0.1)
    # Below the first level the visits of the whole tree count too, not those of the parent.
    assert tree.utility(3) == pytest.approx(0.7 + math.sqrt(math.log(3)) - 0.15)
    assert PolicyTree([10], SMALL).utility(ROOT) == math.inf


def test_backup_all_backs_up_every_child() -> None:
    """Each child's reward and one visit go to itself and to all above it."""
    tree = PolicyTree([10, 10, 10], SMALL)
    update(tree, expand(tree, ROOT, [0.2, 0.6, 0.4]))
    update(tree, expand(tree, 2, [0.5, 0.1]))
    assert tree.order == [(), (0,), (1,), (2,), (1, 0), (1, 2)]
    assert tree.visits == [5, 1, 3, 1, 1, 1]
    assert tree.reward == pytest.approx([1.8, 0.2, 1.2, 0.4, 0.5, 0.1])
    assert tree.total == 5


def test_backup_best_backs_up_the_best_child_only() -> None:
    """The other children stay unvisited, so that the first of them is selected next."""
    tree = PolicyTree([10, 10, 10], replace(SMALL, backup="best"))
    update(tree, expand(tree, ROOT, [0.2, 0.6, 0.4]))
    assert (tree.visits, tree.reward, tree.total) == ([1, 0, 1, 0], [0.6, 0.0, 0.6, 0.0], 1)
    assert tree.utility(1) == math.inf
    assert select(tree) == 1
    update(tree, expand(tree, 1, [0.3, 0.3]))
    assert (tree.visits, tree.total) == ([2, 1, 1, 0, 1, 0], 2)
    assert tree.reward == pytest.approx([0.9, 0.3, 0.6, 0.0, 0.3, 0.0])


@pytest.mark.parametrize("selection", ["uct", "best-first"])
def test_ties_go_to_the_lower_candidate(selection) -> None:
    """Equal candidates are expanded, and chosen, in the order of their indices."""
    tree = PolicyTree([10, 10, 10], replace(SMALL, selection=selection))
    update(tree, expand(tree, ROOT, [0.5, 0.5, 0.5]))
    assert select(tree) == 1
    assert tree.result().order == (0,)


def test_best_first_without_exploration_expands_the_open_node_of_greatest_value() -> None:
    """The cost counts: a dearer node of the same benefit waits."""
    tree = PolicyTree([20, 10, 10], replace(SMALL, selection="best-first", exploration_coefficient=0.0))
    update(tree, expand(tree, ROOT, [0.5, 0.49, 0.3]))
    assert select(tree) == 2


def test_the_promise_adds_what_the_budget_left_may_gain() -> None:
    """W − λ·cost/B + c·σ·(1 − cost/B), worked out by hand: σ of singles 0.2 and 0.6 is 0.2, whatever follows."""
    tree = PolicyTree([10, 20, 10], replace(SMALL, selection="best-first"))
    update(tree, expand(tree, ROOT, [0.2, 0.6, math.nan]))
    assert tree.promise(1) == pytest.approx(0.2 - 0.05 + 0.2 * 0.75)
    assert tree.promise(2) == pytest.approx(0.6 - 0.1 + 0.2 * 0.5)
    update(tree, expand(tree, 2, [0.9, 0.1]))
    assert tree.spread == pytest.approx(0.2)


@given(cases())
@settings(deadline=None, max_examples=120)
def test_best_first_always_expands_the_most_promising_open_node(case: Case) -> None:
    """The queue agrees with a look at every node, and selecting twice selects the same one."""
    tree = PolicyTree(case.costs, replace(case.parameters, selection="best-first"))
    while not tree.closed[ROOT]:
        waiting = [node for node, children in enumerate(tree.children) if children is None and not tree.closed[node]]
        node = select(tree)
        assert node == select(tree) == max(waiting, key=lambda one: (tree.promise(one), -one))
        order = tree.order[node]
        update(tree, expand(tree, node, case.benefit([(*order, index) for index in tree.appendable(node)])))


def test_exploration_widens_a_best_first_search() -> None:
    """A greater c opens more of the short orders before it goes deep."""
    one, costs = synthetic_benefit(3, 8)
    parameters = SearchParameters(budget=320, selection="best-first")
    scored = [
        search(
            costs,
            lambda orders: [one(order) for order in orders],
            replace(parameters, exploration_coefficient=explore),
        ).scored
        for explore in (0.0, 2.4, 100.0)
    ]
    assert scored[0] < scored[1] < scored[2]


@pytest.mark.parametrize("selection", ["uct", "best-first"])
def test_an_order_without_a_score_is_counted_and_never_chosen(selection) -> None:
    """NaN for one of five chunks ranks it last, is counted once, and leaves every mean of the tree finite."""
    tree = PolicyTree([10] * 5, replace(SMALL, selection=selection))
    update(tree, expand(tree, ROOT, [0.1, math.nan, 0.5, 0.3, 0.2]))
    for _ in range(8):
        node = select(tree)
        assert tree.order[node] != (1,)
        update(tree, expand(tree, node, [0.2] * len(tree.appendable(node))))
    assert tree.nan == 1
    assert all(math.isfinite(reward) for reward in tree.reward)
    assert tree.result().order == (2,)
