"""`torch.distributed.constants`: how long collectives and stores wait unless they are told."""

from .group import MINUTES as default_pg_timeout
from .store import DEFAULT as default_store_timeout

__all__ = ["default_pg_timeout", "default_store_timeout"]
