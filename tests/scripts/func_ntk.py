"""Neural tangent kernels of a small CNN: by contracting Jacobians, and by products of vectors with them, vmap within vmap."""

import json

import torch
import torch.nn as nn
from same import fill, tensor
from torch.func import functional_call, jacrev, jvp, vjp, vmap


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, (3, 3))
        self.conv2 = nn.Conv2d(4, 4, (3, 3))
        self.fc = nn.Linear(4 * 16, 3)

    def forward(self, x):
        x = self.conv1(x).relu()
        x = self.conv2(x).relu()
        return self.fc(x.flatten(1))


def main():
    net = fill(CNN())
    params = {k: v.detach() for k, v in net.named_parameters()}
    x_train, x_test = tensor(5, 3, 8, 8, seed=1), tensor(2, 3, 8, 8, seed=2)

    def single(params, x):
        return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def by_jacobians(x1, x2, compute="full"):
        first = [j.flatten(2) for j in vmap(jacrev(single), (None, 0))(params, x1).values()]
        second = [j.flatten(2) for j in vmap(jacrev(single), (None, 0))(params, x2).values()]
        form = {"full": "Naf,Mbf->NMab", "trace": "Naf,Maf->NM", "diagonal": "Naf,Maf->NMa"}[compute]
        return torch.stack([torch.einsum(form, a, b) for a, b in zip(first, second)]).sum(0)

    def by_products(x1, x2, compute="full"):
        def kernel(x1, x2):
            def of_first(params):
                return single(params, x1)

            def of_second(params):
                return single(params, x2)

            output, pull = vjp(of_first, params)

            def column(vector):
                return jvp(of_second, (params,), pull(vector))[1]

            basis = torch.eye(output.numel(), dtype=output.dtype).view(output.numel(), -1)
            return vmap(column)(basis)

        found = vmap(vmap(kernel, (None, 0)), (0, None))(x1, x2)
        return torch.einsum("NMKK->NM", found) if compute == "trace" else found

    full, other = by_jacobians(x_train, x_test), by_products(x_test, x_train).transpose(0, 1).transpose(2, 3)
    assert torch.allclose(full, other, rtol=1e-3, atol=1e-3)
    traces = by_jacobians(x_train, x_test, "trace")
    assert torch.allclose(traces, by_products(x_train, x_test, "trace"), rtol=1e-3, atol=1e-3)
    diagonal = by_jacobians(x_train, x_test, "diagonal")
    return [*traces.flatten().tolist(), full.abs().sum().item(), diagonal.sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
