from __future__ import annotations

import io
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opera.errors import CorpusError, SourceError
from opera.programs import values
from opera.programs.values import Named, Tensor
from opera.sources.docter import output


class Runs:
    """What a hostile pickle is made of: calls something when it is read."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


def write(path: Path, item: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(item if isinstance(item, bytes) else pickle.dumps(item))
    return path


def read(path: Path, item: Any) -> dict[str, Any]:
    return {name: values.decode(x) for name, x in output.read(write(path, item)).items()}


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_values_and_arrays_are_read(tmp_path: Path, protocol: int) -> None:
    array = np.arange(6, dtype="int32").reshape(2, 3)
    item = {
        "x": array,
        "f": np.asfortranarray(array),
        "n": np.float32(0.5),
        "a": [1, (2.5, None)],
        "t": np.array(["a", "b"], dtype=object),
    }
    found = read(tmp_path / "x.p", pickle.dumps(item, protocol=protocol))
    assert found["x"] == found["f"] == Tensor.of(array)
    assert found["n"] == 0.5 and found["a"] == [1, (2.5, None)] and found["t"] == Tensor.of(np.array(["a", "b"]))


def test_tensors_and_dtypes_of_torch_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    found = read(
        tmp_path / "x.p",
        {"input": torch.arange(4.0).reshape(2, 2).t(), "dtype": torch.float16, "size": torch.Size([2])},
    )
    assert found["input"] == Tensor.of(np.array([[0, 2], [1, 3]], "float32"))
    assert found["dtype"] == Named("dtype", "float16") and found["size"] == (2,)


@pytest.mark.parametrize("call", [os.system, eval, getattr, __import__, open, pickle.loads, exec, np.load])
def test_pickles_that_call_something_are_refused_and_call_nothing(tmp_path: Path, call: Any) -> None:
    mark = tmp_path / "hacked"
    with pytest.raises(CorpusError, match="the pickle names"):
        output.read(write(tmp_path / "x.p", {"x": Runs(call, f"touch {mark}")}))
    assert not mark.exists()


def _itself() -> Any:
    item: list[Any] = []
    item.append(item)
    return {"x": item}


def _shared(depth: int = 40) -> Any:
    item: list[Any] = [0]
    for _ in range(depth):
        item = [item, item]
    return {"x": item}


HOSTILE = {
    "cut": pickle.dumps({"x": [1, 2, 3]})[:-4],
    "no pickle": b"import os",
    "empty": b"",
    "itself": pickle.dumps(_itself()),
    "shared": pickle.dumps(_shared()),
    "no names": pickle.dumps([1, 2]),
    "other names": pickle.dumps({1: 2}),
    "persistent": b"\x80\x03X\x01\x00\x00\x00aQ.",
    "array of objects": pickle.dumps({"x": np.array([1, {}], dtype=object)}),
    "records": pickle.dumps({"x": np.zeros(2, dtype=[("a", "i4")])}),
    "large": pickle.dumps({"x": np.zeros((1 << 20) + 1, "int8")}),
    "hidden class": b"cnumpy\ncore.multiarray.__loader__\n.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_broken_and_hostile_pickles_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorpusError):
        output.read(write(tmp_path / "x.p", HOSTILE[name]))


def test_a_pickle_cannot_ask_for_memory_by_numbering_its_objects(tmp_path: Path) -> None:
    for number in (b"r\xff\xff\xff\x7f", b"p2000000000\n"):
        with pytest.raises(CorpusError, match="numbers objects beyond"):
            output.read(write(tmp_path / "x.p", b"\x80\x02}" + number + b"."))


def test_values_that_have_no_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no pickle that opera reads"):
        output.read(write(tmp_path / "x.p", pickle.dumps({"x": 10**5000})))


def test_numpy_states_that_lie_are_refused(tmp_path: Path) -> None:
    data = pickle.dumps({"x": np.zeros(3, "int32")}, protocol=2)
    assert any(op.name == "BUILD" for op, *_ in pickletools.genops(data))
    with pytest.raises(CorpusError):
        output.read(write(tmp_path / "x.p", data.replace(b"K\x03\x85", b"K\x7f\x85")))  # more elements than bytes


def test_a_folder_is_read_in_the_order_of_generation_and_scripts_are_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "workdir" / "pytorch" / "conform_constr" / "torch.abs.yaml_workdir"
    for name, number in (("aa", 1), ("bb", 2), ("cc", 3)):
        write(place / f"{name}.p", {"input": number})
        (place / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    write(place / "dd.p", b"broken")
    (place / "gen_order").write_text("cc.p\naa.p\n../../secret\n")
    assert output.recognised(tmp_path) and not output.recognised(place / "aa.p")
    found, unread = output.read_folder(tmp_path)
    assert [(api.title, api.package, [x["input"] for x in given]) for api, given in found] == [
        ("torch.abs", "torch", [3, 1, 2])
    ]
    assert [x.file for x in unread] == ["torch.abs/dd.p"]
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_readable_inputs_is_told(tmp_path: Path) -> None:
    write(tmp_path / "torch.abs.yaml_workdir" / "a.p", b"")
    with pytest.raises(SourceError, match="no input that can be read"):
        output.read_folder(tmp_path)


def test_opera_reads_no_more_than_its_unpickler_knows() -> None:
    with pytest.raises(CorpusError):
        output._Unpickler(io.BytesIO(b"cbuiltins\neval\n.")).load()
