"""A few steps on every rank, as the README has it; ends with equal replicas that have learned something."""

import horovod.torch as hvd
import torch

from hvd_deepreduce.torch import DeepReduce

hvd.init()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.Linear(100, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
compression = DeepReduce(model.named_parameters())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), compression=compression)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
torch.manual_seed(hvd.rank())
losses = []
for _ in range(60):
    inputs = torch.randn(32, 100)
    loss = (model(inputs) - inputs.sum(1, keepdim=True) / 10).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
everywhere = hvd.allgather(weights[None])
assert all(torch.equal(everywhere[0], one) for one in everywhere)
assert sum(losses[-10:]) < sum(losses[:10]), losses
assert compression.stats()["steps"] == 60
print(f"rank {hvd.rank()}: replicas are equal")
