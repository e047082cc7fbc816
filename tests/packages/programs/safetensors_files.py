"""safetensors: tensors and models with shared weights written, and read whole and in parts."""

import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from same import done, fill, integers, numbers, show

with tempfile.TemporaryDirectory() as folder:
    tensors = {
        "a": numbers(4, 6),
        "b": integers(100, 5),
        "half": numbers(3, 3, seed=2).half(),
        "brain": numbers(2, 8, seed=3).bfloat16(),
        "flags": numbers(7, seed=4) > 0,
        "turned": numbers(4, 3, seed=5).t().contiguous(),
    }
    save_file(tensors, f"{folder}/t.safetensors", metadata={"format": "pt"})
    found = load_file(f"{folder}/t.safetensors")
    for name in sorted(tensors):
        show(name, found[name].float())
        show(
            f"{name} same",
            bool((found[name] == tensors[name]).all()) and found[name].dtype == tensors[name].dtype,
        )
    with safe_open(f"{folder}/t.safetensors", "pt") as file:
        show("part", file.get_slice("a")[1:3, 2:5])
        show("names", len(list(file.keys())))
    show("bytes", sum(save(tensors)[8:]) % 1000)
    show("again", load(save({"x": tensors["a"]}))["x"])
    model = torch.nn.ModuleDict({"one": torch.nn.Linear(3, 3), "two": torch.nn.Linear(3, 3)})
    model["two"].weight = model["one"].weight
    fill(model)
    save_model(model, f"{folder}/m.safetensors")
    other = torch.nn.ModuleDict({"one": torch.nn.Linear(3, 3), "two": torch.nn.Linear(3, 3)})
    other["two"].weight = other["one"].weight
    load_model(other, f"{folder}/m.safetensors")
    show("model", other["two"].weight)
done()
