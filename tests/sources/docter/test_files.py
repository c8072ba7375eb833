from __future__ import annotations

from pathlib import Path

import pytest

from opera.errors import CorpusError, SourceError
from opera.sources.docter import files

GOOD = """
constraints:
  input: {dtype: [torch.float32], ndim: ['2'], tensor_t: [torch.tensor], descp: the input}
  dim: {dtype: [int], ndim: ['0'], range: ['[0,inf)'], default: '1'}
inputs: {required: [input], optional: [dim, '**kwargs']}
package: torch
title: torch.cumsum
version: 1.5.0
"""


def test_a_file_is_read_and_written_again(tmp_path: Path) -> None:
    api = files.parse(GOOD, "torch.cumsum")
    assert (api.title, api.required, api.optional) == ("torch.cumsum", ("input",), ("dim",))
    assert files.write_folder([api], tmp_path / "out") == 1
    again, unread = files.read_folder(tmp_path / "out")
    assert again == [api] and not unread


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("!!python/object/apply:os.system ['touch hacked']", "tags are not allowed"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "aliases are not allowed"),
        ("[" * 50 + "]" * 50, "nested more than"),
        ("- a\n- b", "no mapping"),
        ("title: [", "no YAML"),
        ("package: torch", "no title"),
        ("title: t\nconstraints: [1, 2]", "no mapping"),
        ("title: t\ninputs: {required: [1, 2]}", "no list of names"),
        ("title: t\nconstraints: {x: {range: ['[5,1]']}}", "is empty"),
        ("title: t\nconstraints: {x: {ndim: ['__import__(1)']}}", "ndim of 'x'"),
        ("title: t\nconstraints: {x: {dtype: [[a]]}}", "no list of texts"),
        ("title: t\nx: [" + "1," * 50_000 + "]", "more than"),
        ("title: \x07", "no YAML"),
        (f"title: t\nconstraints: {{x: {{ndim: [0x{'f' * 5000}]}}}}", "no constraints that can be read"),
        (f"title: 0x{'f' * 5000}", "no constraints that can be read"),
    ],
)
def test_hostile_and_broken_files_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(CorpusError, match=reason):
        files.parse(text, "x")


def test_what_cannot_be_read_is_listed_beside_the_rest(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large.yaml").write_text("x" * (files.MAX_SIZE + 1))
    apis, unread = files.read_folder(tmp_path)
    assert [api.file for api in apis] == ["good"]
    assert [x.file for x in unread] == ["bytes.yaml", "large.yaml"]


def test_two_files_of_one_name_are_listed_and_not_mixed(tmp_path: Path) -> None:
    for name in ("good.yaml", "x.yaml", "x.yml"):
        (tmp_path / name).write_text(GOOD)
    apis, unread = files.read_folder(tmp_path)
    assert [api.file for api in apis] == ["good"]
    assert [x.file for x in unread] == ["x.yaml", "x.yml"]


def test_folders_without_constraints_are_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no folder"):
        files.read_folder(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="holds no constraint files"):
        files.read_folder(tmp_path)
    (tmp_path / "bad.yaml").write_text("[")
    with pytest.raises(SourceError, match="not one of the 1 files"):
        files.read_folder(tmp_path)
