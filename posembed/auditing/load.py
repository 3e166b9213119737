"""Load the whole model that is to be audited."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError, CheckpointNotFoundError
from ..pretrained import quiet
from ..progress import one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def load_model(source: str) -> PreTrainedModel:
    """Load a model of transformers with all its weights, by the class that its config names.

    Args:
        source: a folder, a name in the folder POSEMBED_CHECKPOINTS, or a hub id.

    Raises:
        CheckpointNotFoundError: it is nowhere, or the hub cannot be reached.
        CheckpointError: its code is not transformers', or its files cannot be read.
    """
    import transformers

    kept = Path(os.environ.get("POSEMBED_CHECKPOINTS") or ".", source)
    if Path(source).is_file():
        raise CheckpointError(f"{source} is a file; give the folder that it lies in, with its config.json")
    where = str(kept) if (kept / "config.json").is_file() else source
    try:
        config: Any = transformers.AutoConfig.from_pretrained(where)
        named = getattr(config, "architectures", None) or [""]
        made: Any = getattr(transformers, named[0], transformers.AutoModel)
        if hasattr(config, "auto_map") and not hasattr(transformers, named[0]):
            raise CheckpointError(f"{source} brings code of its own, which is not run; audit the model in Python")
        with quiet():
            return made.from_pretrained(where, config=config)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointNotFoundError(f"{source} cannot be loaded: {one_line(error):.300}") from error
    except Exception as error:  # each library has its own for files that it cannot read
        raise CheckpointError(f"{source} cannot be loaded: {one_line(error):.300}") from error
