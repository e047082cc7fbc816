"""Mistakes with layers, losses, optimizers and data."""

from typing import Any

from .case import Cases

LAYERS: Cases = {
    "linear": lambda lib: lib.nn.Linear(3, 4)(lib.ones(2, 5)),
    "linear_vector": lambda lib: lib.nn.Linear(3, 4)(lib.ones(5)),
    "linear_double": lambda lib: lib.nn.Linear(3, 4)(lib.ones(2, 3).double()),
    "linear_long": lambda lib: lib.nn.Linear(3, 4)(lib.ones(2, 3).long()),
    "linear_list": lambda lib: lib.nn.Linear(3, 4)([1.0, 2.0, 3.0]),
    "linear_numbers": lambda lib: lib.nn.Linear("3", 4),
    "linear_arity": lambda lib: lib.nn.Linear(3, 4)(lib.ones(3), lib.ones(3)),
    "linear_nothing": lambda lib: lib.nn.Linear(3, 4)(),
    "linear_missing": lambda lib: lib.nn.Linear(3),
    "linear_keyword": lambda lib: lib.nn.Linear(3, 4, biases=True),
    "linear_function": lambda lib: lib.nn.functional.linear(lib.ones(2, 3), lib.ones(4, 5)),
    "linear_bias": lambda lib: lib.nn.functional.linear(lib.ones(2, 3), lib.ones(4, 3), lib.ones(5)),
    "conv2d_channels": lambda lib: lib.nn.Conv2d(3, 4, 3)(lib.ones(1, 1, 8, 8)),
    "conv2d_dims": lambda lib: lib.nn.Conv2d(3, 4, 3)(lib.ones(8, 8)),
    "conv2d_small": lambda lib: lib.nn.Conv2d(3, 4, 5)(lib.ones(1, 3, 4, 4)),
    "conv2d_groups": lambda lib: lib.nn.Conv2d(3, 4, 3, groups=2),
    "conv2d_out_groups": lambda lib: lib.nn.Conv2d(4, 5, 3, groups=2),
    "conv2d_padding": lambda lib: lib.nn.Conv2d(3, 4, 3, padding="valid_"),
    "conv2d_same_stride": lambda lib: lib.nn.Conv2d(3, 4, 3, stride=2, padding="same"),
    "conv2d_missing": lambda lib: lib.nn.Conv2d(3, 4),
    "conv2d_mode": lambda lib: lib.nn.Conv2d(3, 4, 3, padding_mode="mirror"),
    "conv2d_double": lambda lib: lib.nn.Conv2d(3, 4, 3)(lib.ones(1, 3, 8, 8).double()),
    "conv1d_dims": lambda lib: lib.nn.Conv1d(3, 4, 3)(lib.ones(1, 3, 8, 8)),
    "conv1d_channels": lambda lib: lib.nn.functional.conv1d(lib.ones(1, 2, 8), lib.ones(4, 3, 3)),
    "conv_transpose": lambda lib: lib.nn.ConvTranspose2d(3, 4, 3)(lib.ones(1, 2, 8, 8)),
    "max_pool": lambda lib: lib.nn.functional.max_pool2d(lib.ones(1, 1, 2, 2), 3),
    "max_pool_dims": lambda lib: lib.nn.functional.max_pool2d(lib.ones(4, 4), 2),
    "max_pool_padding": lambda lib: lib.nn.functional.max_pool2d(lib.ones(1, 1, 8, 8), 2, padding=2),
    "avg_pool_dims": lambda lib: lib.nn.functional.avg_pool2d(lib.ones(4), 2),
    "batch_norm_dims": lambda lib: lib.nn.BatchNorm2d(3)(lib.ones(2, 3)),
    "batch_norm_channels": lambda lib: lib.nn.BatchNorm1d(3)(lib.ones(2, 4)),
    "batch_norm_one": lambda lib: lib.nn.BatchNorm1d(3)(lib.ones(1, 3)),
    "layer_norm": lambda lib: lib.nn.LayerNorm(4)(lib.ones(2, 3)),
    "group_norm": lambda lib: lib.nn.GroupNorm(2, 3),
    "group_norm_channels": lambda lib: lib.nn.functional.group_norm(lib.ones(2, 3, 4), 2),
    "instance_norm": lambda lib: lib.nn.InstanceNorm2d(3)(lib.ones(3)),
    "embedding_beyond": lambda lib: lib.nn.Embedding(3, 4)(lib.tensor([3])),
    "embedding_floats": lambda lib: lib.nn.Embedding(3, 4)(lib.tensor([1.0])),
    "embedding_padding": lambda lib: lib.nn.Embedding(3, 4, padding_idx=5),
    "embedding_int": lambda lib: lib.nn.Embedding(3, 4)(2),
    "dropout": lambda lib: lib.nn.Dropout(1.5),
    "dropout_function": lambda lib: lib.nn.functional.dropout(lib.ones(3), -0.1),
    "pad": lambda lib: lib.nn.functional.pad(lib.ones(2, 3), (1, 1, 1)),
    "pad_too_long": lambda lib: lib.nn.functional.pad(lib.ones(3), (1, 1, 1, 1)),
    "pad_reflect": lambda lib: lib.nn.functional.pad(lib.ones(1, 1, 3), (3, 3), mode="reflect"),
    "pad_mode": lambda lib: lib.nn.functional.pad(lib.ones(1, 1, 3), (1, 1), mode="mirror"),
    "interpolate": lambda lib: lib.nn.functional.interpolate(lib.ones(1, 1, 4, 4)),
    "interpolate_both": lambda lib: lib.nn.functional.interpolate(
        lib.ones(1, 1, 4, 4), size=2, scale_factor=2
    ),
    "interpolate_mode": lambda lib: lib.nn.functional.interpolate(lib.ones(1, 1, 4), 2, mode="bilinear"),
    "pixel_shuffle": lambda lib: lib.nn.functional.pixel_shuffle(lib.ones(1, 3, 2, 2), 2),
    "lstm_size": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 6)),
    "lstm_dims": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5)),
    "lstm_state": lambda lib: lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3), (lib.ones(1, 3, 4), lib.ones(1, 3, 4))),
    "lstm_proj": lambda lib: lib.nn.LSTM(3, 4, proj_size=5),
    "gru_state": lambda lib: lib.nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.ones(1, 2, 5)),
    "gru_batch": lambda lib: lib.nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.ones(2, 4)),
    "rnn_kind": lambda lib: lib.nn.RNN(3, 4, nonlinearity="gelu"),
    "rnn_cell": lambda lib: lib.nn.RNNCell(3, 4)(lib.ones(2, 5)),
    "lstm_cell_state": lambda lib: lib.nn.LSTMCell(3, 4)(lib.ones(2, 3), (lib.ones(3, 4), lib.ones(3, 4))),
    "attention_heads": lambda lib: lib.nn.MultiheadAttention(5, 2),
    "attention_size": lambda lib: lib.nn.MultiheadAttention(4, 2)(
        lib.ones(3, 1, 6), lib.ones(3, 1, 6), lib.ones(3, 1, 6)
    ),
    "attention_keys": lambda lib: lib.nn.MultiheadAttention(4, 2)(
        lib.ones(3, 1, 4), lib.ones(5, 1, 4), lib.ones(6, 1, 4)
    ),
    "attention_mask": lambda lib: lib.nn.MultiheadAttention(4, 2)(
        lib.ones(3, 1, 4), lib.ones(3, 1, 4), lib.ones(3, 1, 4), attn_mask=lib.ones(2, 2)
    ),
    "attention_product": lambda lib: lib.nn.functional.scaled_dot_product_attention(
        lib.ones(1, 3, 4), lib.ones(1, 3, 5), lib.ones(1, 3, 5)
    ),
    "transformer_size": lambda lib: lib.nn.Transformer(d_model=8, nhead=2)(
        lib.ones(3, 1, 6), lib.ones(3, 1, 8)
    ),
    "sequential_item": lambda lib: lib.nn.Sequential(lib.nn.Linear(3, 4))[1],
    "sequential_kind": lambda lib: lib.nn.Sequential(3),
    "sequential_sizes": lambda lib: lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Linear(5, 6))(
        lib.ones(2, 3)
    ),
    "module_list_call": lambda lib: lib.nn.ModuleList([lib.nn.Linear(3, 4)])(lib.ones(3)),
    "module_list_item": lambda lib: lib.nn.ModuleList([lib.nn.Linear(3, 4)])[2],
}


class Shared:
    """Modules that a user would write, made of a library."""

    def __init__(self, lib: Any) -> None:
        class Unready(lib.nn.Module):
            def __init__(self) -> None:
                self.layer = lib.nn.Linear(3, 4)

        class Silent(lib.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = lib.nn.Linear(3, 4)

        self.unready, self.silent = Unready, Silent


def register(lib: Any, name: str, value: Any) -> None:
    lib.nn.Module().register_parameter(name, value)


def set_weight(lib: Any, value: Any) -> None:
    lib.nn.Linear(3, 4).weight = value


def loaded(lib: Any, change: Any, **options: Any) -> Any:
    """What `load_state_dict` says to the state of a Linear(3, 4) that `change` has changed."""
    layer = lib.nn.Linear(3, 4)
    state = dict(layer.state_dict())
    change(state)
    return layer.load_state_dict(state, **options)


MODULES: Cases = {
    "without_init": lambda lib: Shared(lib).unready(),
    "without_forward": lambda lib: Shared(lib).silent()(lib.ones(3)),
    "attribute": lambda lib: lib.nn.Linear(3, 4).weights,
    "weight_array": lambda lib: set_weight(lib, lib.ones(4, 3)),
    "parameter_kind": lambda lib: register(lib, "weight", lib.ones(3)),
    "parameter_dot": lambda lib: register(lib, "a.b", lib.nn.Parameter(lib.ones(3))),
    "parameter_long": lambda lib: lib.nn.Parameter(lib.ones(3).long()),
    "buffer_kind": lambda lib: lib.nn.Module().register_buffer("a", 3),
    "module_kind": lambda lib: lib.nn.Module().add_module("a", 3),
    "submodule": lambda lib: lib.nn.Linear(3, 4).get_submodule("a.b"),
    "load_missing": lambda lib: loaded(lib, lambda s: s.pop("bias")),
    "load_unexpected": lambda lib: loaded(lib, lambda s: s.update(other=lib.ones(3))),
    "load_size": lambda lib: loaded(lib, lambda s: s.update(weight=lib.ones(5, 3))),
    "load_all": lambda lib: loaded(lib, lambda s: (s.pop("weight"), s.update(bias=lib.ones(7), more=1))),
    "load_number": lambda lib: loaded(lib, lambda s: s.update(weight=3)),
    "load_list": lambda lib: lib.nn.Linear(3, 4).load_state_dict([1, 2]),
    "load_optimizer": lambda lib: sgd(lib).load_state_dict({"state": {}, "param_groups": []}),
    "to_text": lambda lib: lib.nn.Linear(3, 4).to("gpu"),
    "to_long": lambda lib: lib.nn.Linear(3, 4).to(lib.int64),
    "apply_hook": lambda lib: lib.nn.Linear(3, 4).half()(lib.ones(2, 3)),
    "xavier": lambda lib: lib.nn.init.xavier_uniform_(lib.ones(3)),
    "gain": lambda lib: lib.nn.init.calculate_gain("swish"),
    "clip": lambda lib: lib.nn.utils.clip_grad_norm_(
        with_gradient(lib, float("nan")), 1.0, error_if_nonfinite=True
    ),
    "pack": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2, 1), lib.tensor([1, 2])),
    "pack_zero": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2, 1), lib.tensor([2, 0])),
    "pad_sequence": lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(2, 3), lib.ones(2, 4)]),
}

LOSSES: Cases = {
    "cross_entropy_floats": lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.ones(2)),
    "cross_entropy_ints": lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.ones(2).int()),
    "cross_entropy_batch": lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.zeros(3).long()),
    "cross_entropy_column": lambda lib: lib.nn.functional.cross_entropy(
        lib.ones(2, 3), lib.zeros(2, 1).long()
    ),
    "cross_entropy_class": lambda lib: lib.nn.functional.cross_entropy(lib.ones(2, 3), lib.tensor([0, 3])),
    "cross_entropy_weight": lambda lib: lib.nn.functional.cross_entropy(
        lib.ones(2, 3), lib.tensor([0, 1]), weight=lib.ones(4)
    ),
    "cross_entropy_smoothing": lambda lib: lib.nn.functional.cross_entropy(
        lib.ones(2, 3), lib.tensor([0, 1]), label_smoothing=1.5
    ),
    "cross_entropy_reduction": lambda lib: lib.nn.functional.cross_entropy(
        lib.ones(2, 3), lib.tensor([0, 1]), reduction="average"
    ),
    "cross_entropy_swapped": lambda lib: lib.nn.CrossEntropyLoss()(lib.tensor([0, 1]), lib.ones(2, 3)),
    "nll_floats": lambda lib: lib.nn.functional.nll_loss(lib.ones(2, 3), lib.ones(2)),
    "nll_class": lambda lib: lib.nn.functional.nll_loss(lib.ones(2, 3), lib.tensor([0, -1])),
    "nll_images": lambda lib: lib.nn.functional.nll_loss(lib.ones(2, 3, 4, 4), lib.zeros(2, 4, 5).long()),
    "mse_sizes": lambda lib: lib.nn.functional.mse_loss(lib.ones(2, 3), lib.ones(2, 4)),
    "mse_reduction": lambda lib: lib.nn.MSELoss(reduction="avg")(lib.ones(3), lib.ones(3)),
    "l1_sizes": lambda lib: lib.nn.L1Loss()(lib.ones(5), lib.ones(4)),
    "smooth_l1_beta": lambda lib: lib.nn.functional.smooth_l1_loss(lib.ones(3), lib.ones(3), beta=-1.0),
    "bce_sizes": lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(2, 1), lib.ones(2)),
    "bce_range": lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(2) * 2, lib.ones(2)),
    "bce_long": lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(2), lib.ones(2).long()),
    "bce_logits_sizes": lambda lib: lib.nn.BCEWithLogitsLoss()(lib.ones(2, 1), lib.ones(2)),
    "kl_sizes": lambda lib: lib.nn.functional.kl_div(lib.ones(2, 3), lib.ones(2, 4)),
    "kl_reduction": lambda lib: lib.nn.functional.kl_div(lib.ones(2, 3), lib.ones(2, 3), reduction="x"),
    "hinge": lambda lib: lib.nn.functional.hinge_embedding_loss(lib.ones(3), lib.ones(4)),
    "margin_ranking": lambda lib: lib.nn.functional.margin_ranking_loss(
        lib.ones(3), lib.ones(3), lib.ones(3, 1)
    ),
    "cosine_embedding": lambda lib: lib.nn.functional.cosine_embedding_loss(
        lib.ones(3, 2), lib.ones(3, 2), lib.ones(4)
    ),
    "cosine_similarity": lambda lib: lib.nn.functional.cosine_similarity(lib.ones(2, 3), lib.ones(2, 4)),
    "ctc": lambda lib: lib.nn.functional.ctc_loss(
        lib.ones(5, 2, 3), lib.ones(2, 2).long(), lib.tensor([5]), lib.tensor([2, 2])
    ),
    "triplet": lambda lib: lib.nn.functional.triplet_margin_loss(
        lib.ones(2, 3), lib.ones(2, 3), lib.ones(2, 3), swap=True, margin=-1.0
    ),
    "huber_delta": lambda lib: lib.nn.functional.huber_loss(lib.ones(3), lib.ones(3), delta=0.0),
    "multilabel": lambda lib: lib.nn.functional.multilabel_soft_margin_loss(lib.ones(2, 3), lib.ones(2, 4)),
}


def with_gradient(lib: Any, value: float) -> Any:
    parameter = lib.nn.Parameter(lib.ones(2))
    parameter.grad = lib.full((2,), value)
    return parameter


def sgd(lib: Any, **options: Any) -> Any:
    return lib.optim.SGD([with_gradient(lib, 1.0)], **{"lr": 0.1, **options})


def grouped(lib: Any, extra: Any) -> Any:
    optimizer = sgd(lib)
    optimizer.add_param_group(extra(optimizer))
    return optimizer


OPTIMIZERS: Cases = {
    "no_parameters": lambda lib: lib.optim.SGD([], lr=0.1),
    "one_tensor": lambda lib: lib.optim.SGD(lib.ones(3), lr=0.1),
    "of_numbers": lambda lib: lib.optim.SGD([1.0], lr=0.1),
    "non_leaf": lambda lib: lib.optim.SGD([lib.ones(3, requires_grad=True) * 2], lr=0.1),
    "negative_lr": lambda lib: sgd(lib, lr=-1.0),
    "negative_momentum": lambda lib: sgd(lib, momentum=-0.5),
    "negative_decay": lambda lib: sgd(lib, weight_decay=-0.5),
    "nesterov": lambda lib: sgd(lib, nesterov=True),
    "adam_betas": lambda lib: lib.optim.Adam([with_gradient(lib, 1.0)], betas=(1.0, 0.9)),
    "adam_eps": lambda lib: lib.optim.Adam([with_gradient(lib, 1.0)], eps=-1.0),
    "adam_keyword": lambda lib: lib.optim.Adam([with_gradient(lib, 1.0)], momentum=0.9),
    "twice": lambda lib: grouped(lib, lambda o: {"params": o.param_groups[0]["params"]}),
    "group_kind": lambda lib: grouped(lib, lambda o: [1]),
    "without_lr": lambda lib: lib.optim.SGD([{"params": [with_gradient(lib, 1.0)]}], lr=None),
    "scheduler_kind": lambda lib: lib.optim.lr_scheduler.StepLR(3, 1),
    "scheduler_missing": lambda lib: lib.optim.lr_scheduler.StepLR(sgd(lib)),
    "lambda_count": lambda lib: lib.optim.lr_scheduler.LambdaLR(sgd(lib), [lambda e: 1.0] * 2),
    "plateau_factor": lambda lib: lib.optim.lr_scheduler.ReduceLROnPlateau(sgd(lib), factor=2.0),
    "plateau_mode": lambda lib: lib.optim.lr_scheduler.ReduceLROnPlateau(sgd(lib), mode="least"),
    "plateau_step": lambda lib: lib.optim.lr_scheduler.ReduceLROnPlateau(sgd(lib)).step(),
    "one_cycle": lambda lib: lib.optim.lr_scheduler.OneCycleLR(sgd(lib), 0.1),
    "lbfgs": lambda lib: lib.optim.LBFGS([with_gradient(lib, 1.0)]).step(),
}


def loader(lib: Any, **options: Any) -> Any:
    data = lib.utils.data
    return next(iter(data.DataLoader(data.TensorDataset(lib.ones(4, 2)), **options)))


def batch(lib: Any, items: Any) -> Any:
    return next(iter(lib.utils.data.DataLoader(items, batch_size=len(items))))


DATA: Cases = {
    "dataset_sizes": lambda lib: lib.utils.data.TensorDataset(lib.ones(3), lib.ones(4)),
    "batch_size": lambda lib: loader(lib, batch_size=0),
    "batch_float": lambda lib: loader(lib, batch_size=1.5),
    "workers": lambda lib: loader(lib, num_workers=-1),
    "shuffle_and_sampler": lambda lib: loader(lib, shuffle=True, sampler=[0, 1]),
    "batch_sampler": lambda lib: loader(lib, batch_size=2, batch_sampler=[[0, 1]]),
    "keyword": lambda lib: loader(lib, batchsize=2),
    "timeout": lambda lib: loader(lib, timeout=-1),
    "prefetch": lambda lib: loader(lib, prefetch_factor=2),
    "persistent": lambda lib: loader(lib, persistent_workers=True),
    "ragged": lambda lib: batch(lib, [lib.ones(2), lib.ones(3)]),
    "uncollated": lambda lib: batch(lib, [object(), object()]),
    "ragged_lists": lambda lib: batch(lib, [[1, 2], [3]]),
    "random_split": lambda lib: lib.utils.data.random_split(range(5), [3, 3]),
    "subset": lambda lib: lib.utils.data.Subset(range(5), [7])[0],
    "weights": lambda lib: lib.utils.data.WeightedRandomSampler([1.0, 1.0], 0),
    "samples": lambda lib: lib.utils.data.RandomSampler(range(5), num_samples=-1),
    "generator": lambda lib: lib.utils.data.RandomSampler(range(5), replacement="yes"),
}
