"""Takes away what a question forbids from a process in which no line of a submission has run yet.

A watch stands in the student's own process, and can be changed there. What is not there cannot be called: not by
another name, and not by one that was kept from before, since there was no before.
"""

import ast
import ctypes
import functools
import gc
import importlib.metadata
import importlib.util
import os
import pkgutil
import re
import sys
import types
import warnings
from fnmatch import translate
from pathlib import Path

# How a library says that it needs PyTorch, or has a part that does.
ON_TORCH = re.compile(r"torch(?![-\w])(?!.*\bextra\b)|torch(?![-\w]).*extra == .torch.")
# Kinds of kernels by which an operator of PyTorch computes on a CPU.
KERNELS = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CPU")
# And those of `torch.vmap`, of nested and of sparse tensors, which need not come to the others.
KERNELS += ("FuncTorchBatched", "FuncTorchBatchedDecomposition", "NestedTensorCPU", "SparseCPU", "SparseCsrCPU")
# By which one comes to a node of autograd's way back. It is no method, and can be called.
NODES = {"grad_fn", "_grad_fn", "next_functions"}
# Where a class that is written in C says which methods and which attributes it has, and how long the lines of these
# lists are. A line begins with a name, and then has what computes it.
LISTS = {object.__basicsize__ + 27 * 8: 4 * 8, object.__basicsize__ + 29 * 8: 5 * 8}
# What finds operators that have no kernel, such as `aten::grad`, and what compiles, loads or runs a program that names
# them: functions of PyTorch's inner module, and methods of classes there.
COMPILED = re.compile(
    ".*get_operation|_jit_interpret|_jit_script_|_?create_|_?define$|__setstate__|parse_ir|.*import_ir_module|_load_"
)
COMPILERS = ("CompilationUnit", "ConcreteModuleType", "ScriptModule")


class AbsentError(Exception):
    """Something was asked for that a question forbids."""


def libraries(forbidden):
    """The libraries that are not there at all, PyTorch excepted, by which answers are read."""
    return sorted({*built_on_torch(), *(each for each in forbidden if each.isidentifier())} - {"torch"})


def folders(forbidden):
    """Where these libraries are."""
    found = [importlib.util.find_spec(name) for name in libraries(forbidden)]
    return [folder for spec in found if spec for folder in spec.submodule_search_locations or ()]


@functools.cache
def built_on_torch():
    """The libraries that say of themselves that they need PyTorch: encodings and layers are in these."""
    found = {"posembed"}
    for each in importlib.metadata.distributions():
        if any(ON_TORCH.match(line) for line in each.requires or ()):
            found |= {file.parts[0] for file in each.files or () if file.parts[1:] == ("__init__.py",)}
    return found


def take_away(forbidden):
    """Make it impossible to call what is forbidden, in this process and for good.

    Args:
        forbidden: as `watch.Watch` takes it.
    """
    import torch

    _shut(folders(forbidden))
    for library in libraries(forbidden):
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{library}.")]:
            del sys.modules[name]
        sys.modules[library] = None
    functions = [translate(each[:-2]) for each in forbidden if each.endswith("()")]
    fits = re.compile("|".join(functions) or r"(?!)").match
    homes = [each for each in forbidden if each.startswith("torch.")]
    if functions:
        _operators(torch._C, fits)
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(("torch.", "functorch.")) and module is not None:
            _names(module, fits, tuple(f"{each}." for each in homes))
    _kept(fits)
    for home in homes:
        below = pkgutil.iter_modules(getattr(sys.modules.get(home), "__path__", ()))
        for name in (home, *(f"{home}.{each.name}" for each in below)):
            # What was loaded is emptied; what was not stays away.
            sys.modules.setdefault(name, None)


def _shut(where):
    """Let nothing below these folders be opened: whoever forgets that a library is not there would import it anew."""
    files = [path.stat() for folder in where for path in Path(folder).rglob("*") if path.is_file()]
    files = frozenset((each.st_dev, each.st_ino) for each in files)

    # All that it needs it holds itself, and nobody gives it other code: what it would look up can be changed.
    def look(event, arguments, files=files, stat=os.stat, here=__file__):
        of_function = event == "object.__setattr__" and arguments[1] in ("__code__", "__defaults__")
        if of_function and arguments[0].__code__.co_filename == here:
            raise AbsentError(here)
        if event == "open":
            try:
                found = stat(arguments[0])
            except (OSError, TypeError, ValueError):
                return
            if (found.st_dev, found.st_ino) in files:
                raise ModuleNotFoundError(f"{arguments[0]} is not there")

    # Python takes none of them back.
    sys.addaudithook(look)


def _operators(inside, fits):
    """Replace the kernels of operators: these answer to many names."""
    library = inside._dispatch_library("IMPL", "aten", "", __file__, 0)
    for full in inside._dispatch_get_all_op_names():
        name = full.removeprefix("aten::")
        if not fits(name.partition(".")[0]) or name == full:
            continue
        for kind in KERNELS:
            if inside._dispatch_has_kernel_for_dispatch_key(full, kind):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    library.impl(name, kind, refusal(name.partition(".")[0]))
    # Held by nothing that can be found, so that nobody can end it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    for place in (inside, *(getattr(inside, each) for each in COMPILERS)):
        for name in filter(COMPILED.match, dir(place)):
            setattr(place, name, refusal(name))


def _names(module, fits, homes):
    """Replace functions and classes of a module, and methods of its classes, by all names that there are for them."""
    for name, value in list(vars(module).items()):
        kind = value if isinstance(value, type) else type(value)
        if callable(value) and (
            fits(name) or fits(str(getattr(value, "__name__", ""))) or f"{value.__module__}.".startswith(homes)
        ):
            setattr(module, name, refusal(name))
        elif f"{kind.__module__}.".startswith("torch."):
            _methods(kind, fits)


def _methods(kind, fits):
    """Replace methods of a class; where it is written in C, Python allows that to nobody, and its dictionary does."""
    methods = next(each for each in gc.get_referents(vars(kind)) if isinstance(each, dict))
    found = {name: refusal(name) for name, method in methods.items() if callable(method) and fits(name)}
    if fits("grad_fn"):
        # PyTorch itself asks whether there is one.
        found |= dict.fromkeys(NODES & set(methods), property(lambda _: None))
    methods |= found
    if found:
        _in_c(kind, found)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _in_c(kind, found):
    """Empty what the class itself would make these methods of anew, for whoever asks by `ctypes`."""
    refuse = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    for place, size in LISTS.items():
        line = ctypes.c_void_p.from_address(id(kind) + place).value
        while line and (name := ctypes.c_char_p.from_address(line).value):
            if name.decode() in found:
                ctypes.c_void_p.from_address(line + 8).value = refuse
            line += size


def _kept(fits):
    """Empty what is written in Python and kept elsewhere than by a name, such as in a table of decompositions."""

    def refuse(*_, **__):
        why = ...
        raise why

    for each in gc.get_objects():
        if type(each) is types.FunctionType and f"{each.__module__}.".startswith("torch."):
            old, new = each.__code__, refuse.__code__
            if fits(old.co_name):
                raised = tuple(AbsentError(old.co_name) if value is ... else value for value in new.co_consts)
                each.__code__ = new.replace(co_consts=raised, co_freevars=old.co_freevars)


def refusal(name):
    """A function in place of one that is forbidden."""

    def refuse(*_, **__):
        raise AbsentError(name)

    return refuse


class EachByItself(ast.NodeTransformer):
    """Runs each statement of a cell, whatever became of those before it: one of them may use what is not there."""

    def visit_Module(self, cell):
        """Put each statement but the last, and imports from the future, into a `try` of its own."""
        statements = [each for whole in cell.body for each in _one_by_one(whole)]
        cell.body = [each if _of_the_future(each) else _tried(each) for each in statements[:-1]] + statements[-1:]
        return ast.fix_missing_locations(cell)


def _one_by_one(statement):
    """An import of several libraries as several imports; anything else as it is."""
    return [ast.Import([each]) for each in statement.names] if isinstance(statement, ast.Import) else [statement]


def _of_the_future(statement):
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _tried(statement):
    (tried,) = ast.parse("try: pass\nexcept Exception: get_ipython().showtraceback()").body
    tried.body = [statement]
    return tried
