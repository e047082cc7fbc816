"""The autograd engine: modes, the graph, its executors, hooks, anomaly mode and the profiler.

It moves gradients without knowing what they are: anything that supports `a + b`.
"""

from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .backward import (
    RELEASED,
    default,
    executors,
    install,
    interpreter,
    reset_stats,
    run_backward,
    stats,
)
from .executor import Executor, Fallback, Interpreter, InvalidGradient
from .graph import (
    UNREACHED,
    AccumulateGrad,
    Edge,
    EdgeTuple,
    Error,
    GraphRoot,
    LeafEdge,
    Node,
    NodeMeta,
    Replayable,
    next_sequence_nr,
)
from .hooks import (
    MultiHandle,
    RemovableHandle,
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from .modes import (
    ANOMALY,
    AUTOCAST,
    DEVICE_CONTEXT,
    FUNCTION_MODE,
    INFERENCE,
    NO_GRAD,
    PROFILING,
    SAVED_HOOKS,
    DecoratorContext,
    enable_grad,
    flag,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_flag,
    set_grad_enabled,
    state,
)
from .profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from .task import (
    GraphTask,
    InputBuffer,
    current_task_id,
    is_executing,
    queue_callback,
    should_compute,
    will_execute,
)
