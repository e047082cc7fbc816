"""torchdata: loaders whose state is kept in the middle of an epoch and resumed, and nodes."""

import torch
from same import done, integers, numbers, show
from torch.utils.data import IterableDataset, SequentialSampler, TensorDataset
from torchdata import nodes
from torchdata.stateful_dataloader import StatefulDataLoader


class Count(IterableDataset):
    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 10:
            self.at += 1
            yield torch.full((2,), float(self.at))

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


pairs = TensorDataset(numbers(20, 3), integers(5, 20))
for name, data, shuffle in (("rows", pairs, False), ("shuffled", pairs, True)):
    loader = StatefulDataLoader(data, batch_size=4, num_workers=0, shuffle=shuffle)
    left = iter(loader)
    next(left), next(left)
    state = loader.state_dict()
    rest = [float(x.sum()) for x, _ in left]
    again = StatefulDataLoader(data, batch_size=4, num_workers=0, shuffle=shuffle)
    again.load_state_dict(state)
    show(f"{name} resumed", [float(x.sum()) for x, _ in again] == rest)
    show(f"{name} left", len(rest) if shuffle else rest)
loader = StatefulDataLoader(Count(), batch_size=2, num_workers=0)
left = iter(loader)
next(left), next(left)
again = StatefulDataLoader(Count(), batch_size=2, num_workers=0)
again.load_state_dict(loader.state_dict())
show("counted", [float(batch.sum()) for batch in again])
node = nodes.SamplerWrapper(SequentialSampler(range(12)))
node = nodes.ParallelMapper(node, lambda i: i * 2, num_workers=2, method="thread")
node = nodes.Prefetcher(nodes.Mapper(nodes.Batcher(node, 3), torch.tensor), 2)
loader = nodes.Loader(node)
show("nodes", torch.stack(list(loader)))
left = iter(loader)
next(left)
state = loader.state_dict()
show("nodes left", torch.stack(list(left)))
loader.load_state_dict(state)
show("nodes resumed", torch.stack(list(loader)))
done()
