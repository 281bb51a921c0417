"""A small transformer learns to repeat a sequence; parameters, gradients and states are sharded over the ranks of torchrun.
usage: torchrun --nproc-per-node 2 train.py      PYTHONPATH names libzero's package (bindings/python/README.md)
Two lines are not those of a training with DistributedDataParallel and AdamW: "was:" shows what they were."""
import torch
from torch import distributed, nn
# was: from torch.nn.parallel import DistributedDataParallel
from libzero.torch import ShardedOptimizer

class Transformer(nn.Module):
    def __init__(self, words=64, width=64, length=32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.layers = nn.Sequential(*(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True) for _ in range(2)))
        self.head = nn.Linear(width, words)
    def forward(self, x):
        return self.head(self.layers(self.words(x) + self.places))

distributed.init_process_group("gloo")
torch.manual_seed(0)
model = Transformer()
# was: model = DistributedDataParallel(model); optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
optimizer = ShardedOptimizer(model, stage=3, lr=1e-3)
batches = torch.Generator().manual_seed(1 + distributed.get_rank())
for step in range(20):
    x = torch.randint(64, (8, 16), generator=batches).repeat(1, 2)
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    distributed.all_reduce(mean := loss.detach() / distributed.get_world_size())
    if distributed.get_rank() == 0: print(f"step {step + 1:2}  loss {mean:.7f}", flush=True)
distributed.destroy_process_group()
