"""neuraloperator: a Fourier neural operator, a few steps."""

import torch
from neuralop.models import FNO
from same import done, fill, numbers, show, steps

model = FNO(
    n_modes=(4, 4), hidden_channels=8, in_channels=2, out_channels=1, n_layers=2, projection_channel_ratio=2
)
real = [p for p in model.parameters() if not p.is_complex()]
fill(torch.nn.ParameterList(real))
with torch.no_grad():
    for i, p in enumerate(q for q in model.parameters() if q.is_complex()):
        p.copy_(
            torch.complex(
                numbers(*p.shape, seed=20 + i, scale=0.1), numbers(*p.shape, seed=50 + i, scale=0.1)
            )
        )
x, y = numbers(2, 2, 16, 16), numbers(2, 1, 16, 16, seed=3)
show("out", model(x))
steps(model, lambda: ((model(x) - y) ** 2).mean(), optimizer=torch.optim.Adam(model.parameters(), 1e-3))
done()
