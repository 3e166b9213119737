"""Train with and without torch.compile, in a process of its own: the shape checks of pytest stand in the way.

The compiler's front end alone; its code generator would take minutes. Prints, as JSON, the losses of each case.
"""

import json
import logging

import torch

from posembed import RunConfig, train

TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "length": 16, "batch_size": 8, "steps": 3, "scheme": "learned"}
CASES = {"causal": {}, "masked": {"objective": "masked", "masking_rate": 0.3}}


def losses(**changes):
    told = []
    train(RunConfig(**TINY, **changes), progress=lambda _, loss: told.append(loss))
    return told


def main():
    logging.disable(logging.CRITICAL)
    plain = {name: losses(**more) for name, more in CASES.items()}
    compiler, compiled = torch.compile, []

    def front_end(module):
        compiled.append(module)
        return compiler(module, backend="aot_eager")

    torch.compile = front_end
    both = {name: (plain[name], losses(compile=True, **more)) for name, more in CASES.items()}
    assert len(compiled) == len(CASES)
    print(json.dumps(both))


if __name__ == "__main__":
    main()
