"""Trains a small model with combinations of stages: replicas must be equal, and equal to the oracle."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Sequence

import horovod.torch as hvd
import torch
from common import assert_equal_on_all_ranks, batch_loss, make_model
from in_one_process import InOneProcess
from oracle import Oracle
from sample import pairwise

from hvd_deepreduce import Settings
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS
from hvd_deepreduce.torch import DeepReduce

# Settings fit for tensors of a few hundred elements; other stages are taken as they come.
SETTINGS = {
    "topk": "topk(density=0.05)",
    "threshold": "threshold(value=0.02)",
    "dropping": "dropping(rate=0.9)",
    "randomk": "randomk(density=0.1)",
    "rtopk": "rtopk(density=0.05, pool=0.2)",
    "sidco": "sidco(density=0.1)",
    "dgc": "dgc(density=0.05, warmup=6)",
    "qsgd": "qsgd(bits=5, bucket=16)",
}
CHOSEN = (
    "topk(density=0.05)+rice+qsgd(bits=7)+residual",
    "topk(density=0.1)+bitmap+fp16+residual",
    "threshold(value=0.02)+raw+bf16+residual",
    "dropping(rate=0.9, sample=0.2, scope='global')+rice+raw+residual",
    "none+rice+raw+none",
)
KINDS = [[SETTINGS.get(name, name) for name in kind] for kind in (SPARSIFIERS, INDEX_CODECS, VALUE_CODECS)]
KINDS.append(list(MEMORIES))


def fit(combinations: Iterable[Sequence[str]]) -> list[str]:
    """As one string each; where a sparsifier needs a memory, it gets that one."""
    return list(
        dict.fromkeys(
            "+".join([*stages[:3], "variance" if stages[0] == "variance" else stages[3]]) for stages in combinations
        )
    )


WHICH = {
    "chosen": lambda: CHOSEN,
    "pairs": lambda: fit(pairwise(*KINDS)),
    "all": lambda: fit(
        (*triple, memory)
        for triple, memory in zip(itertools.product(*KINDS[:3]), itertools.cycle(KINDS[3]), strict=False)
    ),
}


def train(text: str, steps: int, name: str, threads: int) -> torch.nn.Module:
    model = make_model()
    compression = DeepReduce.from_string(
        model.named_parameters(), text, name=name, seed=3, min_numel=1, threads=threads, overlap=True
    )
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5), model.named_parameters(), compression=compression
    )
    for step in range(steps):
        optimizer.zero_grad()
        batch_loss(model, hvd.rank(), step).backward()
        optimizer.step()
    assert compression.stats()["steps"] == steps
    return model


def train_alone(text: str, steps: int, ranks: int) -> torch.nn.Module:
    model = make_model()
    settings = Settings.from_string(text, seed=3)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    oracle = Oracle(settings, ranks) if Oracle.knows(settings) else InOneProcess(settings, ranks, shapes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in range(steps):
        oracle.step = step
        gradients = []
        for rank in range(ranks):
            model.zero_grad()
            batch_loss(model, rank, step).backward()
            gradients.append({name: p.grad.flatten().numpy().copy() for name, p in model.named_parameters()})
        for name, parameter in model.named_parameters():
            everyone = [gradient[name] for gradient in gradients]
            reduced = oracle.reduce(name, everyone, 1 / ranks)
            parameter.grad = torch.from_numpy(reduced).view(parameter.shape)
        optimizer.step()
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("which", choices=WHICH)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    triples = WHICH[options.which]()
    for number, text in enumerate(triples):
        model = train(text, options.steps, f"triple{number}", options.threads)
        assert_equal_on_all_ranks(list(model.parameters()), text)
        if number % hvd.size() == hvd.rank():  # the oracle is checked on one rank each, as all replicas are equal
            alone = train_alone(text, options.steps, hvd.size())
            for (name, mine), expected in zip(model.named_parameters(), alone.parameters(), strict=True):
                torch.testing.assert_close(
                    mine, expected, rtol=1e-4, atol=1e-6, msg=lambda m, n=name, t=text: f"{t}: {n}: {m}"
                )
    print(f"TRIPLES {len(triples)} ok")


if __name__ == "__main__":
    main()
