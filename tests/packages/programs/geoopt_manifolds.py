"""geoopt: points on manifolds: retractions, distances, Riemannian steps, a learned curvature."""

import geoopt
from same import done, numbers, show

manifolds = {
    "sphere": (geoopt.Sphere(), numbers(4, 5)),
    "stiefel": (geoopt.Stiefel(), numbers(5, 3)),
    "ball": (geoopt.PoincareBall(c=1.0), numbers(4, 5, scale=0.2)),
    "lorentz": (geoopt.Lorentz(), numbers(4, 5)),
    "positive": (geoopt.SymmetricPositiveDefinite(), numbers(3, 4, 4)),
}
for name, (manifold, x) in manifolds.items():
    x = x.double()
    point = geoopt.ManifoldParameter(manifold.projx(x), manifold=manifold)
    at = point.detach()
    along = manifold.proju(at, 0.1 * numbers(*x.shape, seed=1).double())
    show(name, point)
    there = manifold.retr(at, along)
    show(f"{name} there", there)
    if name in ("sphere", "ball", "lorentz"):
        show(f"{name} carried", manifold.transp(at, there, along))
    if name != "stiefel":
        show(f"{name} distance", manifold.dist(at, manifold.expmap(at, along)))
    for make in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
        optimizer, losses = make([point], lr=0.05), []
        for _ in range(3):
            optimizer.zero_grad()
            loss = ((point - numbers(*x.shape, seed=2).double()) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        show(f"train {name} {make.__name__}", losses)
ball = geoopt.PoincareBall(c=1.3, learnable=True)
x, y = numbers(3, 4, scale=0.2), numbers(3, 4, seed=1, scale=0.2)
total = ball.dist(ball.expmap0(x), ball.expmap0(y)).sum() + ball.mobius_add(x, y).sum()
total.backward()
show("ball", [total.item(), float(ball.isp_c.grad)])
done()
