"""Schemes by name, and those of one's own by import path, "module:Class", which worker processes can import too."""

from __future__ import annotations

import difflib
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from ..errors import EncodingInputError, shown
from ..public import Count, public
from .alibi import ALiBi
from .composed import Composed, PerLayer
from .cope import CoPE
from .fire import FIRE
from .forgetting import Forgetting
from .interface import PositionScheme
from .kerple import KERPLE
from .learnable_sinusoids import LearnableSinusoidal
from .learned import Learned
from .nopos import NoPos
from .pope import PoPE
from .rope import RoPE
from .scaled_logits import ScaledLogits
from .shaw import Shaw
from .sinusoids import Sinusoidal
from .t5 import T5
from .xpos import XPos

SCHEMES: dict[str, type[PositionScheme]] = {
    "nopos": NoPos,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "learnable_sinusoidal": LearnableSinusoidal,
    "shaw": Shaw,
    "t5": T5,
    "alibi": ALiBi,
    "rope": RoPE,
    "xpos": XPos,
    "pope": PoPE,
    "kerple": KERPLE,
    "fire": FIRE,
    "cope": CoPE,
    "forgetting": Forgetting,
    "scaled_logits": ScaledLogits,
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of the model that a scheme is made for; None where nobody said.

    A head is as wide as d_model // n_heads, unless d_head says something else.

    Example:
        >>> from posembed.encodings import Sizes
        >>> Sizes(d_model=64, n_heads=4).causal is None
        True
    """

    d_model: int | None = None
    n_heads: int | None = None
    n_layers: int | None = None
    n_positions: int | None = None
    causal: bool | None = None
    d_head: int | None = None

    def __post_init__(self):
        if self.d_head is None and self.d_model is not None and self.n_heads is not None:
            if self.d_model % self.n_heads:
                raise EncodingInputError(f"d_model is {self.d_model}, which {self.n_heads} heads do not divide")
            object.__setattr__(self, "d_head", self.d_model // self.n_heads)


def schemes() -> list[str]:
    """List the names that `scheme` knows.

    Example:
        >>> from posembed import schemes
        >>> schemes()[:4]
        ['nopos', 'sinusoidal', 'learned', 'learnable_sinusoidal']
    """
    return list(SCHEMES)


@public(EncodingInputError)
def scheme(
    name: str | PositionScheme,
    *,
    d_model: Count | None = None,
    n_heads: Count | None = None,
    n_layers: Count | None = None,
    n_positions: Count | None = None,
    causal: bool | None = None,
    d_head: Count | None = None,
    options: Mapping[str, Any] | None = None,
) -> PositionScheme:
    """Make a position scheme for a model, by name.

    Each scheme asks only for the sizes that it needs, and says which one is missing.

    Args:
        name: one of `schemes()`, or of your own the import path of its class, "module:Class"; or several joined by "+".
            A scheme made before is handed back as it is.
        d_model: the width of the model.
        n_heads: its number of query heads.
        n_layers: its number of layers. Schemes whose layers share nothing then have a part for each; without it they
            are made for one layer.
        n_positions: the longest text, for schemes with a table.
        causal: whether the model attends to the past only.
        d_head: the width of a head, where it is not ``d_model // n_heads``, as in Gemma and Qwen 3.
        options: more arguments for the schemes, by their names: ``{"t5": {"max_distance": 64}}``.

    Returns:
        The scheme; a Transformer gives ``scheme.layer(i)`` to its layer i.

    Raises:
        EncodingInputError: a name that is not in the list, or a class that cannot be imported.
        EncodingInputError: a size that is missing, not positive or not divisible; options for a scheme that is not
            there, or that it does not have; a scheme that is not defined for the objective.

    Example:
        >>> from posembed import scheme
        >>> scheme("alibi", n_heads=8)
        ALiBi(n_heads=8)
        >>> both = scheme("learned+t5", d_model=64, n_heads=8, n_positions=512, causal=True)
        >>> sorted(both.objectives)
        ['causal']
    """
    options = {} if options is None else options
    sizes = Sizes(d_model, n_heads, n_layers, n_positions, causal, d_head)
    names = [] if isinstance(name, PositionScheme) else _names(name)
    _check_options(options, names)
    parts = (
        [name] if isinstance(name, PositionScheme) else [_made(each, sizes, options.get(each, {})) for each in names]
    )
    if causal is not None:
        for part, its_name in zip(parts, names or [type(name).__name__], strict=True):
            part.check_objective(causal, its_name)
    return parts[0] if len(parts) == 1 else Composed(*parts)


def _names(name: str) -> list[str]:
    names = [part.strip() for part in name.split("+")]
    for part in names:
        if ":" not in part and part not in SCHEMES:
            close = difflib.get_close_matches(part.lower(), SCHEMES, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise EncodingInputError(
                f"there is no scheme {shown(part)}; {hint}the schemes are {', '.join(SCHEMES)}; "
                "one of your own is 'module:Class'"
            )
    repeated = next((part for part in names if names.count(part) > 1), None)
    if repeated:
        raise EncodingInputError(f"{repeated!r} stands twice in {shown(name)}; name it once")
    return names


def _check_options(options: Mapping[str, Mapping[str, Any]], names: list[str]) -> None:
    for each, its_options in options.items():
        if each not in names:
            owner = next((name for name in names if each in _option_names(name)), None)
            if owner is not None:
                raise EncodingInputError(f"{each!r} is an option of {owner}; give {{{owner!r}: {{{each!r}: ...}}}}")
            there = ", ".join(names) or "an instance, which takes none"
            raise EncodingInputError(f"there are options for {each!r}, but the scheme is {there}; remove them")
        known = _option_names(each)
        unknown = next((name for name in its_options if name not in known), None)
        if unknown is not None:
            raise EncodingInputError(f"{each} has no option {unknown!r}; it has {', '.join(known) or 'none'}")


def _kind(name: str) -> type[PositionScheme]:
    return _unchanged(name)[0] if ":" in name else SCHEMES[name]


def _arguments(name: str) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """The arguments of a scheme that are sizes of the model, and the others, its options."""
    kind = _kind(name)
    given = inspect.signature(kind).parameters.values()
    sizes = [each for each in given if each.name in (kind.sizes or Sizes.__annotations__)]
    return sizes, [each for each in given if each not in sizes]


def _option_names(name: str) -> list[str]:
    return [each.name for each in _arguments(name)[1]]


def _made(name: str, sizes: Sizes, options: Mapping[str, Any]) -> PositionScheme:
    kind, wanted = _kind(name), _arguments(name)[0]
    given = {each.name: size for each in wanted if (size := getattr(sizes, each.name)) is not None}
    missing = [each.name for each in wanted if each.default is each.empty and each.name not in given]
    if "d_head" in missing:
        missing = [size for size in ("d_model", "n_heads") if getattr(sizes, size) is None]
    if missing:
        raise EncodingInputError(f"{name} needs {' and '.join(f'{size}=' for size in missing)}")
    if kind.shared or sizes.n_layers is None:
        return kind(**given, **options)
    return PerLayer([kind(**given, **options) for _ in range(sizes.n_layers)])


def source_hash(name: str) -> str | None:
    """The hash of the source files of those schemes of a name that are given by import path; None for no such one."""
    return "+".join(_unchanged(part.strip())[1] for part in name.split("+") if ":" in part) or None


def _unchanged(path: str) -> tuple[type[PositionScheme], str]:
    """The class that a path "module:Class" names, and the hash of its source."""
    kind, file, hash_of_import = _imported(path)
    if _hash(file) != hash_of_import:
        raise EncodingInputError(f"{file.name} has changed since it was imported; start Python anew")
    return kind, hash_of_import


@cache
def _imported(path: str) -> tuple[type[PositionScheme], Path, str]:
    """The class, its source file, and the hash that the file had when the class was first asked for."""
    module_name, _, name = path.partition(":")
    if module_name == "__main__":
        raise EncodingInputError(
            f"{path!r} is in a script or notebook, which no other process can import; write the class into a file, "
            f"such as mine.py, and give 'mine:{name}'"
        )
    invalidate_caches()  # the file may be new
    try:
        kind = getattr(import_module(module_name), name, None)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise EncodingInputError(
            f"{module_name!r} cannot be imported ({why}); its file must be in this folder, or be installed"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, PositionScheme)):
        raise EncodingInputError(f"{module_name!r} has no PositionScheme {name!r}; give 'module:Class'")
    file = Path(inspect.getfile(kind))
    return kind, file, _hash(file)


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()[:16]
