"""`torch.utils._pytree`: the names of `xtensor.trees`, private ones too, which public programs import."""

from .. import trees

globals().update({name: value for name, value in vars(trees).items() if not name.startswith("__")})
