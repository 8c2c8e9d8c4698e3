"""Neural collaborative filtering with sparse embeddings, trained once for each way to exchange their gradients.

    horovodrun -np 2 python torch/examples/ncf.py

What it compares: stock Horovod, Horovod's `sparse_as_dense`, and `hvd_deepreduce.torch.DistributedOptimizer` without
loss and with 7-bit values.
"""

import argparse
import json
import time
from itertools import islice
from typing import Any

import horovod.torch as hvd
import torch
from sharded import replicas_identical
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from hvd_deepreduce.demo import feedback
from hvd_deepreduce.demo.feedback import Feedback
from hvd_deepreduce.demo.ncf_options import feedback_of, parse_options
from hvd_deepreduce.demo.progress import training_progress
from hvd_deepreduce.demo.ways import DENSE, STOCK, Sent, Way, tell
from hvd_deepreduce.torch import DistributedOptimizer, sparse_parameters

EVALUATION_USERS = 250


class NeuralFilter(nn.Module):
    """Scores pairs by the product of two embeddings and the embeddings themselves, in two layers (He et al. 2017)."""

    def __init__(self, users: int, items: int, dimension: int) -> None:
        super().__init__()
        self.users = nn.Embedding(users, dimension, sparse=True)
        self.items = nn.Embedding(items, dimension, sparse=True)
        self.hidden = nn.Linear(3 * dimension, 64)
        self.output = nn.Linear(64, 1)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Scores of shape `users`, whose shape `items` has too."""
        user, item = self.users(users), self.items(items)
        features = torch.cat([user * item, user, item], dim=-1)
        scores: Tensor = self.output(torch.relu(self.hidden(features))).squeeze(-1)
        return scores


def make_optimizer(way: str, model: nn.Module, lr: float) -> Any:
    """Names are this way's own, since all ways train in one process."""
    named = [(f"{way}.{name}", parameter) for name, parameter in model.named_parameters()]
    optimizer = torch.optim.Adagrad(model.parameters(), lr=lr)
    if way in (STOCK, DENSE):
        return hvd.DistributedOptimizer(optimizer, named, sparse_as_dense=way == DENSE)
    sparse = [f"{way}.{name}" for name in sparse_parameters(model)]
    return DistributedOptimizer(optimizer, named, rows=way, sparse=sparse, name=way)


def train(way: str, data: Feedback, options: argparse.Namespace) -> Way:
    """Trains and tests one model."""
    torch.manual_seed(options.seed)
    model = NeuralFilter(data.users, data.items, options.dimension)
    optimizer = make_optimizer(way, model, options.lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    rank, size = hvd.rank(), hvd.size()
    batches = feedback.batches(data, options.batch_size, options.negatives, rank, size, options.seed)
    given = exchange_s = 0.0
    start = time.perf_counter()
    with training_progress(options.progress, way, options.steps, rank == 0) as show:
        for step, batch in enumerate(islice(batches, options.steps), start=1):
            optimizer.zero_grad()
            users, items, labels = map(torch.from_numpy, batch)
            loss = binary_cross_entropy_with_logits(model(users, items), labels)
            loss.backward()
            given += sum(bytes_of_rows(parameter.grad) for parameter in tables(model))
            waiting = time.perf_counter()
            optimizer.synchronize()
            exchange_s += time.perf_counter() - waiting
            with optimizer.skip_synchronize():
                optimizer.step()
            show(step, loss.detach())
    step_s = (time.perf_counter() - start) / options.steps
    return Way(
        name=way,
        sent=bytes_sent(way, optimizer, model, given / options.steps),
        hit_rate=hit_rate(model, data),
        step_ms=1e3 * step_s,
        exchange_ms=1e3 * exchange_s / options.steps,
        replicas_identical=replicas_identical(model),
    )


def tables(model: NeuralFilter) -> list[nn.Parameter]:
    """The parameters with sparse gradients."""
    return [model.users.weight, model.items.weight]


def bytes_of_rows(gradient: Tensor | None) -> int:
    """Of the two tensors that stock Horovod gathers for a sparse gradient."""
    assert gradient is not None
    return gradient._indices().nbytes + gradient._values().nbytes


def bytes_sent(way: str, optimizer: Any, model: NeuralFilter, given: float) -> Sent:
    """Per step, counted on this rank."""
    dense = sum(table.nbytes for table in tables(model))
    rest = sum(parameter.nbytes for parameter in model.parameters()) - dense
    stats = None if way in (STOCK, DENSE) else optimizer.rows.stats()
    return Sent.per_step(way, given, dense, rest, stats)


@torch.no_grad()
def hit_rate(model: NeuralFilter, data: Feedback) -> float:
    """Share of users whose held-out item is among the best 10 of 100; a rank looks at its part of them."""
    found = torch.zeros(1)
    for start in range(hvd.rank() * EVALUATION_USERS, len(data.test_users), hvd.size() * EVALUATION_USERS):
        items = torch.from_numpy(data.test_items[start : start + EVALUATION_USERS])
        users = torch.from_numpy(data.test_users[start : start + EVALUATION_USERS, None]).expand_as(items)
        found += feedback.hits(model(users, items).numpy())
    return float(hvd.allreduce(found, name="hits", op=hvd.Sum)) / len(data.test_users)


def main() -> None:
    """Trains every way in turn."""
    options = parse_options((__doc__ or "").partition("\n")[0])
    hvd.init()
    if hvd.size() == 1:
        raise SystemExit("ncf: one process has nothing to exchange; start it with horovodrun -np 2")
    torch.set_num_threads(1)
    data = feedback_of(options)
    if hvd.rank() == 0:
        print(f"{data.name}; {len(data.train_users):,} pairs to train with", flush=True)
    ways = [train(way.format(dimension=options.dimension), data, options) for way in options.ways]
    if hvd.rank() == 0:
        tell(ways, f"{data.name}; {options.steps} steps on {hvd.size()} ranks", "parameters")
        if options.json:
            options.json.write_text(json.dumps([way.as_dict() for way in ways], indent=2) + "\n")
    if not all(way.replicas_identical for way in ways):
        raise SystemExit("ncf: the ranks ended with different parameters")


if __name__ == "__main__":
    try:
        main()
    except feedback.DataError as problem:
        raise SystemExit(f"ncf: {problem}") from None
