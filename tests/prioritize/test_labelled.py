from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from opera.benchmark.command import evaluate
from opera.errors import CorpusError, UsageError
from opera.libraries.onnx.schemas import attribute_defaults
from opera.prioritize import rank
from opera.prioritize.labelled import Labelled, load
from opera.prioritize.metrics import apfd, first_ranks


def line(identity: object, **fields: object) -> str:
    return json.dumps(
        {"id": identity, "op": "Add", "params": {}, "input_shapes": [[2]], "input_dtypes": ["FLOAT"]} | fields
    )


def write(folder: Path, instances: list[str], labels: object) -> tuple[Path, Path]:
    (folder / "i.jsonl").write_text("\n".join(instances))
    (folder / "l.json").write_text(labels if isinstance(labels, str) else json.dumps(labels))
    return folder / "i.jsonl", folder / "l.json"


def artifact(shared_data: Path, compiler: str) -> Labelled:
    return load(
        shared_data / "onnx_instances.jsonl",
        shared_data / f"equipped_{compiler}_instances.jsonl",
        shared_data / f"labels_{compiler}.json",
    )


@pytest.mark.parametrize(
    ("compiler", "least", "corpus_order"),
    [("tvm", 0.64, 0.69), pytest.param("trt", 0.69, 0.74, marks=pytest.mark.full)],
)
def test_apfd_on_the_artifact(shared_data: Path, compiler: str, least: float, corpus_order: float) -> None:
    corpus = artifact(shared_data, compiler)
    defaults = attribute_defaults({row.operator for row in corpus.rows})
    found = evaluate(corpus, ["opera", "opera-paper", "random"], defaults, seeds=30)
    figures = found["opera"]["apfd"]
    print(compiler, {name: metrics["apfd"] for name, metrics in found.items()})
    assert figures.mean >= least
    assert figures.corpus_order >= corpus_order
    assert figures.interval[0] < figures.mean < figures.interval[1]
    assert found["opera-paper"]["apfd"].mean < figures.mean
    assert 0.45 < found["random"]["apfd"].mean < 0.65


def test_evaluate_is_the_ranking_measured(tmp_path: Path) -> None:
    instances = [line(f"t{i}", op=f"Op{i}") for i in range(30)]
    corpus = load(*write(tmp_path, instances, {})[:1], None, write(tmp_path, instances, {"bug": ["t7", "t20"]})[1])
    figures = evaluate(corpus, ["opera"], {}, seeds=5)["opera"]["apfd"]
    assert figures.corpus_order == pytest.approx(1 - 8 / 30 + 1 / 60)
    each = [apfd(first_ranks(rank("opera", corpus.rows, [], {}, seed), corpus.bugs), 30) for seed in range(5)]
    assert figures.mean == pytest.approx(sum(each) / 5)
    assert figures.interval == pytest.approx((figures.mean, figures.mean)), "one bug alone has no spread over bugs"
    assert figures.sd > 0


def test_the_interval_is_over_bugs(tmp_path: Path) -> None:
    files = write(tmp_path, [line(i, op=f"Op{i}") for i in range(10)], {"first": [2], "last": [9]})
    figures = evaluate(load(files[0], None, files[1]), ["opera"], {}, seeds=1)["opera"]["apfd"]
    order = rank("opera", load(files[0], None, files[1]).rows, [], {}, 0)
    bugs = sorted(apfd([order.index(at) + 1], 10) for at in (2, 9))
    assert figures.interval == pytest.approx(tuple(bugs)), "of two bugs, either may be drawn twice"


def test_costs_give_apfdc_and_are_checked(tmp_path: Path) -> None:
    files = write(tmp_path, [line(1, op="A"), line(2, op="B")], {"b": [2]})
    costs = tmp_path / "c.json"
    costs.write_text('{"1": 3.0, "2": 1.0}')
    found = evaluate(load(files[0], None, files[1], costs), ["opera"], {}, seeds=1)["opera"]["apfdc"]
    assert found.corpus_order == pytest.approx((1.0 - 0.5) / 4.0), (
        "Elbaum et al.: what is left, less half of its own, of all"
    )
    costs.write_text('{"1": 3.0}')
    with pytest.raises(CorpusError, match="no seconds of instance 2"):
        load(files[0], None, files[1], costs)


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    files = write(tmp_path, [line(1), line(2)], {"bug": [2]})
    figures = evaluate(load(files[0], None, files[1]), ["opera"], {}, seeds=1)["opera"]["apfd"]
    assert (figures.sd, figures.interval) == (0.0, (figures.mean, figures.mean))


def test_an_unknown_strategy_is_a_usage_error(tmp_path: Path) -> None:
    files = write(tmp_path, [line(1)], {"bug": [1]})
    with pytest.raises(UsageError, match="no strategy called 'opra'"):
        evaluate(load(files[0], None, files[1]), ["opra"], {})


@pytest.mark.parametrize(
    ("instances", "labels", "message"),
    [
        ([], {"b": [1]}, "i.jsonl: no instances"),
        ([line(1), "{"], {"b": [1]}, "i.jsonl:2: "),
        ([line(1), '{"id": 2}'], {"b": [1]}, "i.jsonl:2: .*`op`"),
        ([line(1, input_shapes=[["x"]])], {"b": [1]}, "i.jsonl:1: .*input_shapes"),
        ([line([1])], {"b": [1]}, "i.jsonl:1: .*id"),
        ([line(1), "", line(1)], {"b": [1]}, "i.jsonl:3: id 1 was given before, in line 1"),
        ([line(1)], '{"a": [1],\n "b": [2]}', "l.json:2: bug 'b' names id 2.*\n.*\n.*opera benchmark --help"),
        ([line(1)], '{"a": [1],\n\n "b": []}', "l.json:3: bug 'b' has no tests"),
        ([line(1)], {"b": ["1"]}, "l.json:1: bug 'b' names id '1'"),
        ([line(1)], {}, "l.json: no bugs"),
        ([line(1)], [1], "l.json: "),
        ([line(1)], "nope", "l.json: "),
        ([line(1), "[" * 100_000], {"b": [1]}, "i.jsonl:2: "),
    ],
)
def test_bad_files_are_named_with_their_line(
    tmp_path: Path, instances: list[str], labels: object, message: str
) -> None:
    files = write(tmp_path, instances, labels)
    with pytest.raises(CorpusError, match=message):
        load(files[0], None, files[1])


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    files = write(tmp_path, [line(1)], {"b": [1]})
    with pytest.raises(CorpusError, match=r"absent\.jsonl: No such file"):
        load(tmp_path / "absent.jsonl", None, files[1])
    (tmp_path / "bytes.jsonl").write_bytes(random.Random(0).randbytes(50))
    with pytest.raises(CorpusError, match=r"bytes.jsonl:1: "):
        load(files[0], tmp_path / "bytes.jsonl", files[1])
