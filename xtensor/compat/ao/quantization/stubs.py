"""The marks in a model between which it is to be quantised."""

from __future__ import annotations

from ..nn.stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
