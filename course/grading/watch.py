"""Notes what a function uses that its question forbids, while it computes an answer."""

import sys
import threading
from fnmatch import fnmatchcase

from torch.overrides import TorchFunctionMode

# What would go round the watch: compiled functions, another watch.
ALWAYS = ("torch.jit._script", "setprofile()")


class Watch:
    """A context in which calls are looked at, however their function was imported.

    Args:
        forbidden: modules, such as "torch.nn.modules.sparse", with all that is below them; and functions of any module
            by their last name, such as "one_hot()", in which * stands for any letters: PyTorch has several names for
            one thing.

    Attributes:
        used: the forbidden ones that were called, once each.
    """

    def __init__(self, forbidden):
        self.watched = tuple(forbidden) + ALWAYS if forbidden else ()
        self.used = []
        self.operators = _Operators(self._note)

    def __enter__(self):
        if self.watched:
            self.operators.__enter__()
            # Threads that an answer starts are watched too.
            threading.setprofile(self._look)
            sys.setprofile(self._look)
        return self

    def __exit__(self, *_):
        if self.watched:
            if sys.getprofile() != self._look:
                self._note("", "setprofile")
            sys.setprofile(None)
            threading.setprofile(None)
            self.operators.__exit__(None, None, None)

    def _look(self, frame, event, argument):
        if event == "call":
            module = str(frame.f_globals.get("__name__"))
            # A function of the notebook may have the name of what it replaces.
            self._note(module, "" if module == "__main__" else frame.f_code.co_name)
            if module == "torch._ops" and frame.f_code.co_name == "__call__":
                # An operator by its inner name; printing a tensor calls some, too.
                self._note("", str(getattr(frame.f_locals.get("self"), "__name__", "")).partition(".")[0])
        elif event == "c_call" and argument is not _SETPROFILE:
            self._note("", argument.__name__)
        elif event == "c_call" and frame.f_code is not Watch.__exit__.__code__:
            self._note("", "setprofile")

    def _note(self, module, function):
        for each in self.watched:
            if each.endswith("()"):
                found, called = bool(function) and fnmatchcase(function, each[:-2]), f"{function}()"
            else:
                found, called = f"{module}.".startswith(f"{each}."), each
            if found and called not in self.used:
                self.used.append(called)


class _Operators(TorchFunctionMode):
    """Sees functions of PyTorch that no Python code calls by itself, such as those that `map` calls."""

    def __init__(self, note):
        super().__init__()
        self.note = note

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.note("torch", getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


_SETPROFILE = sys.setprofile
