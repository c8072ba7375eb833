"""XLA, the compiler behind jit_compile=True, as TensorFlow drives it."""

import os

import tensorflow as tf

FLAGS = ["--xla_cpu_multi_thread_eigen=false", "--xla_cpu_enable_fast_math=false"]
FLAGS.append("--xla_allow_excess_precision=false")  # else what the CPU has no bfloat16 for stays float32 in between
if tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 21):  # an XLA that does not know a flag ends the process
    FLAGS.append("--xla_cpu_enable_platform_dependent_math=false")
os.environ["XLA_FLAGS"] = " ".join(FLAGS)


def load(model, feeds, signature):
    """Trace the model, and convert the graph to HLO."""

    def serve(*inputs):
        return model(list(inputs))

    call = tf.function(serve, input_signature=signature, autograph=False, jit_compile=True)
    fed = [tf.constant(array, spec.dtype) for array, spec in zip(feeds.values(), signature, strict=True)]
    call.experimental_get_compiler_ir(*fed)(stage="hlo")
    return model, call, fed


def compile_call(loaded):
    """Call it once, which compiles it, and undo what that changes of the model's state."""
    model, call, fed = loaded
    before = [(variable, variable.numpy()) for variable in model.variables]
    call(*fed)
    for variable, value in before:
        variable.assign(value)
    return loaded


def infer(compiled):
    """Run it from its first state, but for the seeds of what it draws."""
    model, call, fed = compiled
    for layer in model.layers:
        if getattr(layer, "stateful", False) is True:
            layer.reset_state()
    before = [(variable, variable.numpy()) for variable in model.variables if variable.name != "seed_generator_state"]
    outputs = [tensor.numpy() for tensor in tf.nest.flatten(call(*fed))]
    for variable, value in before:
        variable.assign(value)
    return outputs
