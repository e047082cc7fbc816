"""Why a name of PyTorch's is not here: shared by the alias's errors and the coverage table."""

from __future__ import annotations

import re

__all__ = ["EXCUSED", "reason", "sentence"]

TORCHSCRIPT = "TorchScript: Python runs as it is"
DISTRIBUTED = "a part of torch.distributed that is not written (docs/distributed.md says what is)"
RPC = "calls of other processes: use collectives, send and recv, or a pipeline (docs/distributed.md)"
QUANTISED = "quantisation of exported programs, or a part of PyTorch's own backends"
OWN_KERNELS = "a kernel or a device of PyTorch's own builds"
EXCUSED = frozenset((TORCHSCRIPT, DISTRIBUTED, RPC, OWN_KERNELS))

# The first pattern that matches a name (without `torch.`) gives the reason.
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"_C\b|_C\.|_dynamo|_inductor|_prims|_refs|_decomp|_functorch|_higher_order_ops|_subclasses|_\w+(\.|$)",
        "PyTorch's private interface",
    ),
    (r"jit\b|(Compilation|Completed)|script", TORCHSCRIPT),
    (
        r"(distributed\.)?(rpc|autograd\.context)\b|distributed\.nn\.RemoteModule|distributed\.optim\.DistributedOptimizer",
        RPC,
    ),
    (r"(distributed|distributed_c10d|rpc)\b|.*is_distributed", DISTRIBUTED),
    (r"(ao|quantization)\b", QUANTISED),
    (
        (
            r"(.*\.)?(cudnn_\w+|miopen_\w+|mkldnn_\w+|batch_norm_(elemt|stats|backward_\w+|gather_\w+|update_stats)|"
            r"to_mkldnn|is_vulkan\w*|is_(ipu|maia|mtia|xpu|vulkan)|(ipu|mtia|xpu|maia)|record_stream|"
            r"cudnn_is_acceptable|profiler_allow_\w+|set_autocast_(ipu|xla)\w*|(get|is)_autocast_(ipu|xla)\w*)$"
        ),
        OWN_KERNELS,
    ),
    (r"(mtia|xpu|xpu\.\w+|vulkan|windows)\b", OWN_KERNELS),
    (r"(.*\.)?(\w*semi_structured\w*|SparseSemiStructured\w+|\w*_sparse_(compressed|semi)\w*)$", OWN_KERNELS),
    (
        r"package\b",
        "its archives hold Python code and pickles: save a program with torch.export.save, or a state_dict",
    ),
    (
        r"(fx|export|library|package|overrides|ops|classes|utils\.(cpp_extension|_pytree))\b",
        "a compiler interface",
    ),
    (
        r"(.*\.)?(Sym(Int|Float|Bool)|sym_\w+|SymBoolType|SymIntType|while_loop|cond|vmap|func)$",
        "a compiler interface",
    ),
    (
        (
            r"(.*\.)?(\w*Type|Graph\w*|Script\w+|Block|Code|CompilationUnit|Argument\w*|AliasDb|Capsule|"
            r"ConcreteModule\w*|CallStack|ErrorReport|ExecutionPlan|FileCheck|FunctionSchema|Future|Gradient|IODescriptor|"
            r"JITException|LiteScriptModule|LockingLogger|LoggerBase|NoopLogger|Node|OperatorInfo|StaticModule|Tag|"
            r"ThroughputBenchmark|TracingState|Use|Value|import_ir\w*|parse_(ir|schema|type_comment)|fork|wait|"
            r"merge_type_from_type_comment|unify_type_list|get_file_path|InferredType|DeepCopyMemoTable|"
            r"BufferDict|ParameterDict|ModuleDict|CompleteArgumentSpec|AVG|SUM|AggregationType|"
            r"Deserialization\w+|Serialization\w+|PyTorchFile\w+|Benchmark\w+|DispatchKey\w*|ExcludeDispatchKeyGuard|"
            r"PRIVATE_OPS|ScriptClassFunction|FatalError|prepare_multiprocessing_environment|freeze|"
            r"set_module|classproperty|USE_\w+|init_num_threads|compiled_with_cxx11_abi|thread_safe_generator)$"
        ),
        TORCHSCRIPT,
    ),
    (
        (
            r".*\b(datapipes|\w*DataPipe|DataChunk|DF\w+|graph(_settings)?|functional_datapipe|guaranteed_\w+|"
            r"non_deterministic|runtime_validation\w*)$"
        ),
        "data pipes, which PyTorch has given up",
    ),
    (
        r"(Tensor\.)?(\w+Storage|Storage|StorageBase|storage|storage_type)$",
        "typed storages, which PyTorch has given up",
    ),
    (
        r"autograd\.(Profiler\w+|profiler_\w+|kineto_available|NestedIOFunction|enforce_grad_\w+|is_view_\w+)$",
        "the inside of PyTorch's engine and profiler",
    ),
    (
        r"utils\.checkpoint\.(CheckpointPolicy|SAC_\w+|Selective\w+|create_selective\w+)$",
        "selective checkpointing",
    ),
    (r"hub\b", "it downloads and runs code from the network: load a model's own package instead"),
    (
        r"(eig|symeig|lstsq|solve|matrix_rank|lu_solve|triangular_solve)$",
        "removed or deprecated: use torch.linalg",
    ),
    (r"Tensor\.(eig|symeig|lstsq|solve|volatile|reinforce|resize|resize_as|index)$", "removed from PyTorch"),
)


def reason(name: str) -> str:
    """Why the name (dotted, without `torch.`) is absent, or "" where there is no reason but that it is not written."""
    for pattern, why in REASONS:
        if re.match(pattern, name):
            return why
    return ""


def sentence(symbol: str) -> str:
    """That a symbol, `torch.x.y`, is not here, and why where there is a reason."""
    why = reason(symbol.removeprefix("torch."))
    return f"{symbol} is not in xtensor{f': {why}' if why else ''}"
