"""What a question forbids is taken away before a notebook is run, by all its names; the rest goes on as before."""

import ast
import base64
import io
import json
import math
import subprocess
import sys
import types

import pytest
import torch
from tool import TOOLS, load

QUESTIONS = load("course").questions_of(TOOLS.parent / "course" / "order-and-lookup")
FORBIDDEN = [each for question in QUESTIONS for each in question["without"]]


class Gradient(torch.nn.Module):
    """What a notebook can carry in a text: a program that was compiled elsewhere, and asks for a gradient."""

    def forward(self, loss: torch.Tensor, table: torch.Tensor):
        return torch.autograd.grad([loss], [table])


def compiled():
    """Its bytes, as text."""
    torch.jit.save(torch.jit.script(Gradient()), program := io.BytesIO())
    return base64.b64encode(program.getvalue()).decode()


# What a class that is written in C holds below its dictionary: methods and attributes, each a line that begins with a
# name. `made` is Python's own function that makes of a line what can be called.
IN_C = """
import ctypes
def anew(kind, name, place, size, made):
    line = ctypes.c_void_p.from_address(id(kind) + object.__basicsize__ + place).value
    while ctypes.c_char_p.from_address(line).value != name:
        line += size
    made.restype, made.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return made(kind, line)
"""
# Runs in a process of its own, for what is taken away does not come back.
PROGRAM = """
import json, sys
import torch, torch.nn.functional as F
from torch import nn
import posembed

given = json.load(sys.stdin)
sys.path.insert(0, given["grading"])
from absent import take_away

names = {"x": torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), "ids": torch.tensor([1, 1, 2])}
names |= {"torch": torch, "F": F, "nn": nn, "kept": F.scaled_dot_product_attention}
names |= {"library": posembed.__file__, "compiled": given["compiled"]}
names["decomposed"] = torch._decomp.decomposition_table
exec("table = torch.zeros(5, 8, requires_grad=True); loss = (table[ids] ** 2).sum() + table.sum()", names)
take_away(given["forbidden"])
said = {}
for each in given["asked"]:
    try:
        exec(each, names)
        said[each] = ""
    except Exception as error:
        said[each] = type(error).__name__
print(json.dumps(said))
"""
GONE = [
    "import posembed",
    "import transformers",
    "from x_transformers.x_transformers import AlibiPositionalBias",
    "import rotary_embedding_torch",
    "from sklearn.preprocessing import label_binarize",
    "import pandas; pandas.get_dummies([0, 1])",
    "import sys; del sys.modules['torch.nn.functional']; from posembed import check_equivariance",
    "import sys; sys.modules.pop('posembed'); import posembed",
    "import sys, importlib; sys.modules.pop('transformers'); importlib.import_module('transformers')",
    "open(library).read()",
    "import os; os.chdir(os.path.dirname(library)); open('../posembed/lookup.py', 'rb')",
    "F.scaled_dot_product_attention(x, x, x)",
    "kept(x, x, x)",
    "list(map(kept, [x], [x], [x]))",
    "torch._C._nn.scaled_dot_product_attention(x, x, x)",
    "torch.ops.aten.scaled_dot_product_attention(x, x, x)",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[x[:, None]] * 3)",
    "torch._C._VariableFunctions._scaled_dot_product_attention_math(x, x, x)",
    "nn.MultiheadAttention(8, 1)(x, x, x)",
    "from torch.nn.modules.transformer import TransformerEncoderLayer; TransformerEncoderLayer(8, 1)(x)",
    "from torch.nn.attention.flex_attention import flex_attention; flex_attention(*[x[:, None]] * 3)",
    "from torch.onnx.ops import attention; attention(*[x[:, None]] * 3)",
    "from torch.onnx.ops import rotary_embedding",
    "torch.autograd.functional.vjp(lambda t: t[ids], table)",
    "F.one_hot(ids)",
    "torch.ops.aten.one_hot(ids, 3)",
    "torch.vmap(lambda i: torch.ops.aten.one_hot(i, 3))(ids[:, None])",
    "nn.Embedding(5, 8)",
    "loss.backward()",
    "torch.Tensor.backward(loss)",
    "torch.autograd.grad(loss, table)",
    "torch.func.grad(lambda t: t[ids].sum())(table)",
    "torch.func.vjp(lambda t: t[ids], table)",
    "torch.autograd.functional.jacobian(lambda t: t[ids].sum(), table)",
    "torch.autograd.Variable._execution_engine.run_backward((loss,), (torch.ones(()),), False, False, (table,))",
    "torch._C._jit_get_operation('aten::grad')[0]([loss], [table])",
    "torch._C._get_operation_overload('aten::grad', '')[0]([loss], [table])",
    "torch._C._jit_interpret_graph(torch._C.Graph(), ())",
    "torch.ops.aten.grad([loss], [table])",
    "torch.ops.aten.embedding_dense_backward(x[0], torch.arange(5), 5, -1, False)",
    "torch._decomp.decompositions.embedding_dense_backward(x[0], torch.arange(5), 5, -1, False)",
    "import torch.autograd.forward_ad as ad; ad.enter_dual_level(); ad.make_dual(table.detach(), x[0])",
    "torch.func.linearize(lambda t: t[ids], table)",
    "decomposed[torch.ops.aten.embedding_dense_backward.default](x[0], torch.arange(5), 5, -1, False)",
    "torch._C.CompilationUnit().define('def f(l: Tensor, t: Tensor):\\n  return torch.autograd.grad([l], [t])\\n')",
    "import base64, io; torch.jit.load(io.BytesIO(base64.b64decode(compiled)))(loss, table)",
    "import base64; program = base64.b64decode(compiled)\n"
    "torch._C.import_ir_module_from_buffer(torch._C.CompilationUnit(), program, None, {}, False).forward(loss, table)",
    "torch._C._jit_script_compile('f', None, None, {})",
    "torch._C._jit_script_class_compile('f', None, None, {})",
    "import torch.jit._recursive as recursive\nclass M(nn.Module):\n  def forward(self, x): return x\n"
    "recursive.create_script_module(M(), lambda _: [], share_types=False)",
    "torch._C.ConcreteModuleTypeBuilder(nn.Module).build()._create_hooks([], [], [], [])",
    "torch._C.ScriptModule('f', torch._C.CompilationUnit(), True)._create_method_from_trace('f', None, (), None)",
    IN_C + "engine = torch.autograd.Variable._execution_engine\n"
    "run = anew(type(engine), b'run_backward', 216, 32, ctypes.pythonapi.PyDescr_NewMethod)\n"
    "run(engine, (loss,), (torch.ones(()),), False, False, (table,))",
    IN_C + "node = anew(torch._C.TensorBase, b'grad_fn', 232, 40, ctypes.pythonapi.PyDescr_NewGetSet)\n"
    "node.__get__(loss)(torch.ones(()))",
    # What looks at the files that are opened asks no function that could be replaced, and has no other code.
    "import os.path, sys; sys.modules.pop('posembed', None)\n"
    "real, os.path.realpath = os.path.realpath, lambda *_, **__: '/'\n"
    "try: import posembed\nfinally: os.path.realpath = real",
    "import gc, types\n"
    "hooks = [f for f in gc.get_objects() if type(f) is types.FunctionType and f.__module__ == 'absent']\n"
    "next(f for f in hooks if f.__name__ == 'look').__code__ = (lambda event, arguments: None).__code__",
]
THERE = [
    "import numpy, json, inspect",
    "repr(x); repr(x.bfloat16()); repr(table)",
    "torch.einsum('btd,bsd->bts', x, x)",
    "torch.vmap(lambda x: x @ x.mT)(x)",
    "nn.Softmax(dim=-1)(x); nn.LayerNorm(8)(x); F.softmax(x, dim=-1)",
    "torch.no_grad()(lambda: x @ x.mT)()",
    "torch.zeros(5).index_put((ids,), torch.ones(3), accumulate=True)",
    "torch.zeros(5, 8).index_add(0, ids, x[0, :3])",
    "torch.zeros(5).scatter_reduce(0, ids, torch.ones(3), 'sum')",
    "torch.unique(ids, return_counts=True); torch.bincount(ids, minlength=5)",
    "torch.linalg.lstsq(x[0], x[0]); x.quantile(0.5); x.median()",
    "F.linear(x, torch.eye(8)); F.embedding(ids, table); table.grad",
    "nn.utils.rnn.pad_sequence([x[0], x[1]])",
    "x.clone().detach().requires_grad_()",
    # There is no way back, and whoever asks is told so.
    "assert table[ids].grad_fn is None and table[ids]._grad_fn is None",
    "class P(torch.autograd.Function):\n  forward = staticmethod(lambda ctx, t: setattr(P, 'ctx', ctx) or t.clone())\n"
    "P.apply(table[ids])\nassert P.ctx.next_functions is None",
]


@pytest.mark.slow
def test_what_is_forbidden_is_gone_by_all_its_names_and_nothing_else():
    given = {"grading": str(TOOLS.parent / "course" / "grading"), "forbidden": FORBIDDEN, "asked": GONE + THERE}
    given["compiled"] = compiled()
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=json.dumps(given), capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert {each: said[each] for each in THERE if said[each]} == {}
    refused = ("AbsentError", "ModuleNotFoundError", "MemoryError")
    assert {each: said[each] for each in GONE if said[each] not in refused} == {}


def test_a_library_that_is_not_there_takes_none_away_that_the_same_line_imports():
    absent = load("absent", TOOLS.parent / "course" / "grading")
    cell, failed = ast.parse("import not_there, math\nfrom not_there import f\nx = math.pi"), []
    shell = types.SimpleNamespace(showtraceback=lambda: failed.append(sys.exc_info()[0]))
    names = {"get_ipython": lambda: shell}
    exec(compile(absent.EachByItself().visit(cell), "cell", "exec"), names)
    assert names["x"] == math.pi and failed == [ModuleNotFoundError] * 2
