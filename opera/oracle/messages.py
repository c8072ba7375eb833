"""What a compiler's message says of the cause: its boilerplate cut, and the text that tells it from others."""

from __future__ import annotations

import re

from opera.oracle.signature import DTYPE

COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Escape sequences of terminals: colours, titles, links."""
BEFORE = (
    r"#+ Exception summary\s",  # torch.onnx.export, after its advice
    r"Detected at node [^\n]* defined at \(most recent call last\):",  # TensorFlow
    r"in user code:",  # TensorFlow's AutoGraph, before a traceback
    r"Could not translate MLIR to FlatBuffer\.[^\n]*?: error:\s",  # TFLite's converter, with a file of the caller's
)
"""What comes up to here, and it too, says what was done, not what was wrong."""
AFTER = (
    r"\n\s*Summary:\n-- (?=Conversion is failed for)",  # OpenVINO
    r"\n# Metadata omitted\b",  # TVM's printer
    r"\n\s*(?:Stack trace|Backtrace|Exception raised from [^\n]*|C\+\+ CapturedTraceback|Python callstack):?\n",
    r"\n\s*\[bt\] \(\d+\)",  # TVM
    r"\n\s*frame #\d+:",  # PyTorch's C++
    r"\n\s*from user code:",  # PyTorch's compiler: the caller's code, then advice
    r"\n\s*(?:Original traceback|Found from|Set TORCH\w*=|For even more developer context|You can suppress this exception)",
    r"\n\s*(?:Developer debug context|For more details about this graph break)",
    r"\n\s*While executing %",  # torch.fx
    r"\n\s*\(Refer to the full stack trace above",  # torch.onnx.export
    r"\s*\u2b06",  # torch.onnx.export: an arrow, and the call with all its arguments
    r"\n\s*Arguments received by ",  # Keras
    r"\s*\[Op:\w+\](?: name:)?",  # TensorFlow, eager
    r"\n\s*\[\[\{\{node ",  # TensorFlow
    r"\n\s*Please specify OpenVINO Extensions",
    r"\n\s*Fatal Python error: ",  # faulthandler, of a process that dies: where its threads were
    r"\n\s*(?:Current thread|Thread) 0x[0-9a-f]+ [^\n]*\(most recent call first\)",  # where nothing comes before it
)
"""What comes from here on says nothing more."""
PREFIXES = (
    r"Exception from \S+?:\d+:",  # OpenVINO
    r"Check 'false' failed at \S+?:\d+:",
    r"FrontEnd API failed with \w+:",
    r"Errors during ONNX translation:",  # until 2026.0
    r"\[ GENERAL_ERROR \]",  # until 2023.3
    r"Model wasn't fully converted\. Failed operations detailed log:",
    r"-- .*? with a message:",
    r"Exception happened during conversion of operation .*? with schema .*",
    r"While validating ONNX node '<Node\([^\n]*?\): [^\n']*>':",
    r"While validating node '[^\n]*' with friendly_name '[^\n']*':",
    r"Shape inference input shapes \{[^\n]*\}$",
    r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ :",  # ONNX Runtime
    r"Load model from \S+ failed:\s*",
    r"Exception during initialization:",
    r"\[ShapeInferenceError\] (?:Inference error\(s\): )?\(op_type:\w+, node name: [^()]*\):(?: \[ShapeInferenceError\])?",
    r"Non-zero status code returned while running \w+ node\. Name:'[^']*' Status Message:",
    r"/\S+\.\w+:\d+ (?:[\w:<>*&,~ ]+ )?[\w:<>~ ]+\([^()]*\)(?: const)?(?: \[with [^\]]*\])?:?",  # file, function
    r".*? was false\.\s+(?=\S)",
    r"Traceback \(most recent call last\):",
    r"Check failed: .*?(?: is false| \([^()]* vs\. [^()]*\))\s*:\s*(?=\S)",  # TVM
    r"(?:tvm\.)?(?:error\.)?(?:InternalError|TVMError):",  # TVM, where it repeats the type
    r"In ir\.Op\(.*?support_level=\d+\),",
    r"\[\d\d:\d\d:\d\d\] \S+:\d+:",  # TVM's and glog's lines
    r"backend='\w+' raised:",  # PyTorch
    r"<class '[\w.]+'>:",  # torch.onnx.export
    r"Exception encountered when calling [\w.]+(?:\(\))?\.",  # Keras
    r"Graph execution error:",  # TensorFlow
    r"(?:<[^<>\n]+>|\S+\.py):\d+:\d+: error:",  # MLIR, of TensorFlow Lite: the caller's own line
    r"Failed to run converter passes:",  # LiteRT Torch
    r"(?:<[^<>\n]+>:\d+: )?error: (?:loc\()?"  # its module and node, and their line where there is a file
    r"\"[^\"\n]*;\"\(\"[^\"\n]*\"(?:\(\"[^\"\n]*\":\d+:\d+\))?\)\)?:",
    r"<stack traces unavailable>",
    r"\{\{function_node \S+?\}\}",
    r"\{\{node \S+?\}\}",
    r"OpenCV\([^)\s]+\) \S*:-?\d+: error:",  # OpenCV, each time that it raises it again
    r"\(-2:Unspecified error\)",
    r"in function '[^'\n]*'$",
    r"> Node \[[\w.]+@[\w.]+\]:\(\S*\) parse error:",
    r">(?= |$)",
)
"""What a line may begin with that every message of its kind begins with."""
LOG = re.compile(r"[IW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\] ")
"""How a line begins that a library has logged, as glog has it, which is no error."""
FRAME = re.compile(
    r"^\s*(?:0x[0-9a-fA-F]+|File \"[^\"]*\", line \d+(?:, in .*)?|\d+: \S.*|at \S+:\d+|\^[\s^~]*|[~^]+)$"
)
"""A line of a traceback."""
LEFT = r"(?:\w*Mark|prim::\w*Const\w+|torch::None)"
BESIDES = re.compile(
    rf"(?ms)^-- (?:{LEFT}|<built-in function getitem>)(?:-\d+)? with a message:\n"
    r".*?(?=^-- |^\s*Summary:|\Z)"
)
"""What OpenVINO says of constants, lists and outputs that are left over of an operator which it could not convert."""
WITHIN = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
"""What stands in brackets, up to three more within."""
DUMP = re.compile(rf"\b(?:\w+\.)*\w+\((?=\w+=){WITHIN}?\bname=\"(?P<name>[\w.]+)\"{WITHIN}\)")
"""An object that is printed with all its fields, `ir.Op(span=None, ..., name="relax.sqrt", ...)`: its name says it."""
OBJECT = re.compile(r"<(?P<name>[\w.]+) object at 0x[0-9a-f]+>")
CHECK = re.compile(r"Check '(.*)' failed at \S+?:\d+:?")
"""An assertion of OpenVINO: what stands after it says more."""
_BEFORE, _AFTER = (re.compile("|".join(parts)) for parts in (BEFORE, AFTER))
_PREFIX = re.compile(rf"\s*(?:{'|'.join(PREFIXES)})")
LONGEST = 160
"""Characters of a message that `identifying` keeps: what follows is detail, and differs more often."""
GAP = " ... "
"""Stands in an identifying text for what may differ."""
LETTERS = 3
"""An identifying text has so many letters at least."""
NAMES = r"(?<=\bError for )\S+|\b(?:Stateful)?PartitionedCall(?:_\d+)?(?::\d+)?|\bserving_default_\w+(?::\d+)?"
"""Names of tensors that converters have made: of MNN's messages, of TensorFlow's graphs."""
OF_TENSOR = re.compile(r"(?<=Compute Shape Error) for \S+")
"""How MNN names the tensor that it stops at: the next model has another."""
PRINTED = r", dtype=torch\.\w+"
"""How a tensor of PyTorch's is printed, if its dtype is not the default."""
VARIES = re.compile(
    rf"(?P<kept>\b{DTYPE}\b)|{NAMES}"
    r"|0x[0-9a-fA-F]+"  # addresses
    rf"|{PRINTED}"
    r"|(?:[A-Za-z]:)?(?:[\w.+~@-]*[/\\])+(?=[\w.@-]+)"  # folders of paths
    r"|\w+(?: \| \w+)+(?: \|)?|\{'[^'{}]*'(?:, '[^'{}]*')+\}"  # sets, whose order hangs on the process: UINT64 | STRING | FLOAT
    r"|(?<=find output )\S+(?= from the model)"  # MNN's, a name that TensorFlow gives: Identity, PartitionedCall:0
    r"|(?<=[A-Za-z_])\d+(?![A-Za-z\d])"  # the number of a name: lv12
    r"|(?<![A-Za-z_\d])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![A-Za-z_\d])"  # numbers
)
"""What another run, version or program may print otherwise in the same message; a dtype (`kept`) may not differ."""
SYMBOLIC = re.compile(r"\b(?:unbacked|unhinted|data-dependent)\b")
UNBACKED = re.compile(rf"\bu\d+\b(?:, u\d+\b)*|{VARIES.pattern}")
"""The same, of messages on sizes that torch.export does not know (SYMBOLIC): it numbers them, `u0`, and that is no dtype; how
many there are in a list, and in which order, is no matter."""


def cause(message: str) -> str:
    """Return the lines of a message that say what is wrong, without what every message of its compiler begins or ends with.

    Empty where there is nothing else.
    """
    text = COLOURS.sub("", message)
    _, told, causes = text.partition("\nCaused by:\n")  # Rust's errors: what was being done, then why, numbered
    text = re.sub(r"(?m)^\s+(?:\d+: )?", "", causes) if told and causes.strip() else text
    for found in _BEFORE.finditer(text):
        if text[found.end() :].strip():
            text = text[found.end() :]
            break
    text = _first(BESIDES.sub("", text), text)
    ends = (text[: max(0, x.start() - 1)] for x in _AFTER.finditer("\n" + text))
    return "\n".join(_lines(next(filter(_lines, ends), text)))


def gist(message: str) -> str:
    """Return what a message says of its cause; all of it where it says nothing else."""
    return cause(message) or message


def several(message: str) -> int:
    """Return how many operators OpenVINO says that it could not convert; 0 of one, and of other messages."""
    return max(len(re.findall(rf"(?m)^-- (?!{LEFT}(?:-\d+)? with).* with a message:", message)) - 1, 0)


def of_operator(message: str, operator: str) -> str:
    """Return what OpenVINO says of one operator among several that it could not convert; else the message as it is.

    It lists them in the order of the alphabet, so neither the first nor the last need be the one of which the others fail; what
    is left over of one that failed (LEFT) says nothing of why.
    """
    if re.fullmatch(LEFT, operator):
        return message
    head, *parts = re.split(r"(?m)^(?=-- )", message)
    named = {x[1]: part for part in parts if (x := re.match(r"-- (\S[^\n]*?)(?:-\d+)? with a message", part))}
    return head + named[operator].partition("\nSummary:")[0] if len(named) > 1 and operator in named else message


def _first(told: str, text: str) -> str:
    """Return a part of a summary of OpenVINO's, or all of it where nothing that failed is left in it."""
    return told if re.search(r"(?m)^-- .* with a message:", told) else text


def short(text: str) -> str:
    """Return a text with names in place of objects that are printed with all their fields, or with their addresses."""
    return OBJECT.sub(lambda x: x["name"].rpartition(".")[2], DUMP.sub(lambda x: x["name"], text))


def _lines(text: str) -> list[str]:
    lines, checks, framed = [], [], False
    for line in text.splitlines():
        if LOG.match(line):
            continue
        if FRAME.match(line):
            framed = True
            continue
        if framed and line.startswith("    "):  # the source of a traceback's line
            continue
        framed = False
        while found := _PREFIX.match(line):
            if found.end() == 0:
                break
            line = line[found.end() :]
        if found := CHECK.match(line.strip()):
            checks.append(f"Check '{found[1]}' failed")
            line = line.strip()[found.end() :]
        if line.strip():
            lines.append(line.strip())
    return lines or checks[-1:]


def identifying(message: str) -> str:
    """Return the text that tells a failure from others, with GAP where a number, an address or a folder stood.

    It `says` the message that it was made of. Empty where too little is left.
    """
    flat, at, pieces, left = one_line(message), 0, [], LONGEST
    varies = UNBACKED if SYMBOLIC.search(message) else VARIES
    for line in cause(message).splitlines():
        text = one_line(line)
        if len(text) > left:
            text = text[:left].rpartition(" ")[0]
        left -= len(text)
        for piece in _between(text, varies):
            place = flat.find(piece, at) if piece else -1
            if place >= 0:
                pieces.append(piece)
                at = place + len(piece)
    return GAP.join(pieces) if sum(map(str.isalpha, "".join(pieces))) >= LETTERS else ""


def _between(text: str, varies: re.Pattern[str]) -> list[str]:
    """Return what stands between the parts of a text that vary."""
    pieces, start = [], 0
    for found in varies.finditer(text):
        if found["kept"] is None:
            pieces.append(text[start : found.start()].strip())
            start = found.end()
    return [*pieces, text[start:].strip(" :")]


def says(message: str, wanted: str) -> bool:
    """Whether a message has an identifying text. Scripts do the same in a line of their own."""
    return re.search(".*?".join(map(re.escape, wanted.split(GAP))), one_line(message)) is not None


def one_line(text: str) -> str:
    """Return a text without colours, and with single blanks between its words."""
    return " ".join(COLOURS.sub("", text).split())
