"""Greedy decoding of one batch, and the probability of given continuations: the two uses of a causal model."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch


@dataclass
class Decoded:
    """The new token ids of one row, without the end token, and why it ended (`invalid`: the model gave NaN)."""

    ids: list[int] = field(default_factory=list)
    finish: Literal["stop", "length", "invalid"] = "length"


def greedy_decode(model: Any, rows: Sequence[Sequence[int]], max_new: int, ends: Set[int]) -> list[Decoded]:
    """For each row of prompt ids the most probable continuation of at most `max_new` tokens, ended by any of `ends`.

    Rows are padded on the left; a finished row leaves the batch, so the slowest answer costs only itself. Equal to
    the library's `generate(do_sample=False)`, which keeps finished rows in the batch.
    """
    import torch
    from transformers import DynamicCache

    results = [Decoded() for _ in rows]
    with torch.inference_mode():
        tokens, mask = _left_padded(rows, model.device)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        cache = DynamicCache(config=model.config)
        alive = list(range(len(rows)))
        while alive:
            output = model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            best, chosen = output.logits[:, -1].max(dim=-1)
            kept = _record(results, alive, chosen.tolist(), best.tolist(), max_new, ends)
            if kept and len(kept) < len(alive):
                index = torch.tensor(kept, device=model.device)
                cache.batch_select_indices(index)
                chosen, mask, positions = chosen[index], mask[index], positions[index]
            alive = [alive[row] for row in kept]
            tokens = chosen[:, None]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            positions = positions[:, -1:] + 1
    return results


def continuation_means(model: Any, rows: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[float]:
    """Per row of ids the mean log-probability of its last `lengths` ids, given those before; NaN for no id."""
    import torch

    keep = max(lengths) + 1
    with torch.inference_mode():
        tokens, mask = _left_padded(rows, model.device)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        logits = model(
            input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=keep
        ).logits
        # What stands at t predicts t + 1.
        log_probabilities = logits[:, :-1].float().log_softmax(dim=-1)
        targets = tokens[:, -(keep - 1) :] if keep > 1 else tokens[:, :0]
        picked = log_probabilities.gather(2, targets[:, :, None])[:, :, 0].double()
        return [float(picked[row, -length:].mean()) if length else math.nan for row, length in enumerate(lengths)]


def _record(
    results: Sequence[Decoded],
    alive: Sequence[int],
    chosen: Sequence[int],
    best: Sequence[float],
    max_new: int,
    ends: Set[int],
) -> list[int]:
    """Note the token chosen in each row of the batch; the rows of the batch that go on."""
    kept = []
    for row, (token, logit) in enumerate(zip(chosen, best, strict=True)):
        result = results[alive[row]]
        if math.isnan(logit):
            result.finish = "invalid"
        elif token in ends:
            result.finish = "stop"
        else:
            result.ids.append(token)
            if len(result.ids) < max_new:
                kept.append(row)
    return kept


def _left_padded(rows: Sequence[Sequence[int]], device: Any) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Ids [n, t] and mask [n, t], the rows at the right edge."""
    import torch

    width = max(len(row) for row in rows)
    tokens = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for index, row in enumerate(rows):
        tokens[index, width - len(row) :] = torch.tensor(row)
        mask[index, width - len(row) :] = 1
    return tokens.to(device), mask.to(device)
