"""ONNX Runtime on an NVIDIA GPU: all of a model by one execution provider, or not at all."""

import os

import onnxruntime

from opera.compilers.recipes.onnxruntime import session_options

os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # by default float32 is multiplied with the 10 bits of TF32
OPTIONS = {"CUDAExecutionProvider": {"use_tf32": "0"}}


def load_cuda(path, options=None):
    return session_by("CUDAExecutionProvider", path, options)


def load_tensorrt(path, options=None):
    return session_by("TensorrtExecutionProvider", path, options)


def session_by(provider, path, options):
    """Create a session. ONNX Runtime would else run on the CPU what the provider cannot, and all where it cannot be loaded."""
    options = options or session_options()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = onnxruntime.InferenceSession(path, options, providers=[(provider, OPTIONS.get(provider, {}))])
    if provider not in session.get_providers():
        raise RuntimeError(f"{provider} cannot be used here: ONNX Runtime took {', '.join(session.get_providers())}")
    return session
