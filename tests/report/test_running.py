"""What a draft shows of what its script printed."""

from __future__ import annotations

from opera.report import running


def test_what_a_script_printed_is_cut_to_its_failure():
    noise = "\n".join(f"W1 loading {place}" for place in range(50))
    compared = "Y: got float32[1] [2.0]\nTraceback (most recent call last):\nAssertionError: \nno"
    assert running.excerpt(f"{noise}\n{compared}") == "Y: got float32[1] [2.0]\nAssertionError: \nno"
    raised = "Traceback (most recent call last):\n  File a\n    f()\n    ^^^\n" + "  deep\n" * 60 + "ValueError: bad"
    told = running.excerpt(f"{noise}\n{raised}").splitlines()
    assert (
        told[0].startswith("Traceback") and told[-1] == "ValueError: bad" and len(told) < 40 and "    ^^^" not in told
    )
    assert (
        running.hide("at /home/me/env/lib/site-packages/tvm/x.py and /home/me", ("/home/me",))
        == "at …/site-packages/tvm/x.py and …/"
    )


def test_what_native_code_printed_before_python_raises_something_else_is_shown() -> None:
    printed = "PipelineModule:: Can't find output a from the model:\nTraceback (most recent call last):\nRuntimeError: nothing"
    says = "PipelineModule:: Can't find output b from the model:"
    assert running.excerpt(printed, says).startswith("PipelineModule:: Can't find output a")
    assert running.excerpt(printed).startswith("Traceback")


def test_what_libraries_log_of_other_things_is_not_what_a_script_shows():
    logged = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795474294.172989    9146 cudart_stub.cc:31] Could not find cuda drivers on your machine",
        "[22:35:08] /project/src/target/llvm/codegen_cpu.cc:1183: Warning: Unknown pragma pragma_scope",
    ]
    assert (
        running.excerpt("\n".join([*logged, "infer: InternalError: std::bad_alloc"]))
        == "infer: InternalError: std::bad_alloc"
    )
