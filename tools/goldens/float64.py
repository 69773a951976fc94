"""Computing in float64 throughout, also where a model's code asks for float32."""
import torch
from torch.overrides import TorchFunctionMode


class Float64(TorchFunctionMode):
    """float32 in the model's code becomes float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        return func(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})
