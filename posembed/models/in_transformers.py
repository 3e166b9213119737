"""Any position scheme inside a model of transformers, in place of the model's own positions."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch

from ..encodings import Composed, NoPos, PerLayer, PositionScheme, RoPE
from ..encodings import scheme as make_scheme
from ..encodings.interface import layers_of
from ..encodings.rope_config import rotation_of
from ..encodings.rope_scaling import kind_of
from ..errors import EncodingInputError, ModelInputError
from .transformers_families import ENTRY, MARK, NAME, SCHEME, Anatomy, anatomy, sizes


def use_scheme(
    model: Any, scheme: str | PositionScheme, *, options: Mapping[str, Mapping[str, Any]] | None = None
) -> SchemeInModel:
    """Put a position scheme into a model of transformers, in place of the model's own positions.

    The model is changed, not copied, and stays what it was otherwise: it trains, generates with a cache, returns
    attention weights. The scheme becomes its submodule ``position_scheme``; its own position table is not trained
    meanwhile. Make an optimizer after this: one that was made before does not have the scheme's parameters, which then
    stay as they are. ``save_pretrained`` writes the scheme's weights, and its name and options into the config, as
    ``position_scheme``; `load_with_scheme` brings them back.

    Positions are the ``position_ids`` that the model is called with, from 0 also where its own begin elsewhere
    (RoBERTa); else tokens are counted as the model itself does, and ``generate`` leaves padding out. Texts that are
    packed into one row see each other unless the mask of `pack` is given with its positions. (Transformers keeps them
    apart by ``position_ids`` alone only with ``use_cache=False``, without a mask, and in causal models but OPT.) The
    scheme acts in all layers, those too that a model leaves without positions (SmolLM3), but for "rope" by its name.

    Args:
        model: with any head: ALBERT, BERT, CamemBERT, DistilBERT, ELECTRA, Gemma, Gemma 3 (text), GPT-2, GPT-NeoX,
            Llama, Mistral, Mixtral, ModernBERT, OLMo 2, OPT, Phi, Phi-3, Qwen 2 and 3, RoBERTa, SmolLM3, StarCoder2,
            T5 (an encoder alone), ViT (position 0 is [CLS], then its patches row by row, as one line) or XLM-RoBERTa.
            The error of any other says why it cannot, or how to try it: the attention of BLOOM and GPT-J is code of
            their own, which nothing can be put into, and Whisper has two stacks, of which one reads sound.
        scheme: a `PositionScheme`; or a name for `posembed.scheme`, which makes it for the sizes of the model. "rope"
            in a model that rotates is the model's own rotation, layer by layer, as `RoPE.from_config` reads it, and a
            warning says so where that is more than base 10000; another is given as an object, ``RoPE(d_head)``.
            One whose angles depend on the length of the text, "dynamic" or "longrope", is refused by name:
            ``RoPE.from_config(model.config, length=...)`` is that of one length.
        options: for a name, as for `posembed.scheme`; the model's own rotation has none.

    Returns:
        A handle that takes the scheme out again, a context manager with a method ``remove``.

    Raises:
        ModelInputError: a model that is not supported or has a scheme already; a scheme of several coordinates, or one
            that reads gates of the tokens.
        EncodingInputError: a scheme that is not defined for the model's objective, or that cannot be made.
        EncodingInputError: a name that no scheme has.

    Example:
        >>> import torch
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from posembed.models import use_scheme
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2)).eval()
        >>> with use_scheme(model, "alibi"):
        ...     model(torch.zeros(1, 20, dtype=torch.long)).logits.shape  # more than the 8 positions of its own table
        torch.Size([1, 20, 9])
    """
    parts = anatomy(model)
    made = scheme_for(model, parts, scheme, options)
    _say_which_rotation(model.config, scheme)
    if made.n_axes is not None:
        raise ModelInputError(
            "the scheme's positions have several coordinates, but the model counts its tokens; use another"
        )
    if any(each.gated for each in layers_of(made, len(parts.attentions))):
        raise ModelInputError(
            "the scheme reads the tokens that enter attention, and models of transformers hand it queries and keys "
            "alone; use one that does not, or posembed's own Transformer"
        )
    said: dict[str, Any] = {"name": scheme, "options": options or {}}
    if not _plain(said):
        # To tell another scheme from it: nothing is made of these words.
        said = {"name": None, "made": str(made)}
    return SchemeInModel(model, made.to(model.device), parts, said)


def scheme_for(model: Any, parts: Anatomy, scheme: str | PositionScheme, options: Any) -> PositionScheme:
    """Make the scheme of a name for the sizes of a model, or check one that was made."""
    if not isinstance(scheme, str):
        return make_scheme(scheme, causal=parts.causal, options=options)
    known = sizes(model.config, parts)
    # Made even where the model's own rotation takes the place of a part: names and options are checked here.
    try:
        made = make_scheme(scheme, **known, causal=parts.causal, options=options).to(model.dtype)
    except EncodingInputError as error:
        if "n_positions" in known or "n_positions=" not in str(error):
            raise
        raise EncodingInputError(f"{error}, and the model has no longest text; give a scheme that is made") from None
    if not _means_its_rotation(model.config, scheme):
        return made
    if "rope" in (options or {}):
        raise ModelInputError("'rope' is here the model's own rotation, without options; give another as an object")
    own = _own_rotation(model.config, known["n_layers"])
    if isinstance(made, Composed):
        return Composed(*(own if type(part) is RoPE else part for part in made))
    return own


def _means_its_rotation(config: Any, scheme: Any) -> bool:
    named = isinstance(scheme, str) and "rope" in map(str.strip, scheme.split("+"))
    return named and bool(getattr(config, "rope_parameters", None))


def _own_rotation(config: Any, n_layers: int) -> PositionScheme:
    """The rotation of each layer of the model; one for all where these are the same."""
    of_layers = [rotation_of(config, layer, None) for layer in range(n_layers)]
    if by_length := {kind_of(its["scaling"].said) for its in of_layers if its} & {"dynamic", "longrope"}:
        raise ModelInputError(
            f"its angles depend on how long a text is ({', '.join(by_length)}); give those of one length, "
            "as an object: RoPE.from_config(model.config, length=...)"
        )
    if of_layers[0] is not None and all(each == of_layers[0] for each in of_layers):
        return RoPE(**of_layers[0])
    return PerLayer([NoPos() if each is None else RoPE(**each) for each in of_layers])


def _say_which_rotation(config: Any, scheme: Any) -> None:
    """A rope by its name is not the plain one where the model turns by other angles."""
    usual = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}
    if _means_its_rotation(config, scheme) and not config.rope_parameters.items() <= usual.items():
        warnings.warn(
            f"'rope' is here the model's own rotation, {dict(config.rope_parameters)}; where another is meant, give it "
            "as an object, RoPE(d_head, base=...)",
            stacklevel=3,
        )


def _plain(said: Any) -> bool:
    """Whether a config can hold this, and gives the same back."""
    if isinstance(said, Mapping):
        return all(isinstance(name, str) and _plain(value) for name, value in said.items())
    if isinstance(said, list | tuple):
        return all(map(_plain, said))
    return said is None or isinstance(said, str | int | float)


class SchemeInModel:
    """A position scheme at work in a model; `use_scheme` makes it.

    Attributes:
        model: the model, changed in place.
        scheme: its scheme, now also ``model.position_scheme``.

    Example:
        >>> from transformers import GPT2Config, GPT2Model
        >>> from posembed.models import use_scheme
        >>> model = GPT2Model(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2))
        >>> installed = use_scheme(model, "t5")
        >>> tuple(model.position_scheme.weight.shape)
        (32, 2)
        >>> installed.remove()
        >>> hasattr(model, "position_scheme")
        False
    """

    def __init__(self, model: Any, scheme: PositionScheme, parts: Anatomy, said: Mapping[str, Any]):
        from .transformers_calls import hooks

        if any(hasattr(each, SCHEME) for each in parts.attentions):
            raise ModelInputError(f"{type(model).__name__} has a position scheme already; remove that first")
        of_layers = layers_of(scheme, len(parts.attentions))
        self.model, self.scheme = model, scheme
        _give_its_own_config(model)
        with ExitStack() as undo:
            undo.callback(model.set_attn_implementation, _attention_of(model))
            model.set_attn_implementation(NAME)
            if model.config._attn_implementation != NAME:  # transformers only warns
                raise ModelInputError(
                    f"{type(model).__name__} has attention that cannot be exchanged, so it takes no scheme"
                )
            for module, of_layer in zip(parts.attentions, of_layers, strict=True):
                # Not as a submodule: it would be saved once more with each layer.
                module.__dict__[SCHEME] = of_layer
                undo.callback(module.__dict__.pop, SCHEME)
            model.position_scheme = scheme
            undo.callback(delattr, model, "position_scheme")
            model.register_buffer(MARK, torch.zeros(1, device=model.device))
            undo.callback(delattr, model, MARK)
            # The second one keeps from_pretrained from making a model with its former positions.
            for name, value in ((ENTRY, said), ("attn_implementation", NAME)):
                setattr(model.config, name, value)
                undo.callback(delattr, model.config, name)
            # A silent table gets no gradient, and distributed training would wait for one.
            for parameter in parts.parameters:
                undo.callback(parameter.requires_grad_, parameter.requires_grad)
                parameter.requires_grad_(False)
            for undo_hook in hooks(parts, scheme):
                undo.callback(undo_hook)
            self._undo = undo.pop_all()

    def remove(self) -> None:
        """Give the model its own positions back; a second time this does nothing."""
        self._undo.close()

    def __enter__(self) -> SchemeInModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _give_its_own_config(model: Any) -> None:
    """A copy of its config: models that were made from one config object share it, and each says its own scheme."""
    copies: dict[int, Any] = {}
    copy.deepcopy(model.config, copies)
    for module in model.modules():
        if own := copies.get(id(getattr(module, "config", None))):
            module.config = own


def _attention_of(model: Any) -> str:
    """The attention that a model has without a scheme; of one that was saved with a scheme nobody knows it."""
    now = model.config._attn_implementation
    return now if now != NAME else "sdpa" if model._supports_sdpa else "eager"
