"""What a reader without the wheel does, in a fresh interpreter: load the encoder, meet faults, try again.

python hub_reader.py RESULTS FOLDER    serves FOLDER as a hub, with one fault after the other and then without any
python hub_reader.py RESULTS           loads from the cache alone

The hub's client reads its settings on import, which is why this is no part of the tests' own process.
"""

import contextlib
import hashlib
import json
import os
import sys
import time
from pathlib import Path

from hub_server import HubServer, On, answers, cuts_weights_in_half

FAULTS = {
    "404": answers(404),
    "401": answers(401),
    "500": answers(500),
    "cut": cuts_weights_in_half,
    "tokenizer": On("tokenizer.json|vocab.txt", answers(500)),
}


def main(results: Path, folder: Path | None = None) -> None:
    server = HubServer(folder, "sentence-transformers/all-MiniLM-L6-v2") if folder else None
    if server:
        os.environ["HF_ENDPOINT"] = server.address
    import posembed.pretrained

    posembed.pretrained.installed_folder = lambda: None
    found = dict(_attempts(server)) if server else {"cache": _attempt(None)}
    results.write_text(json.dumps(found), encoding="utf-8")


def _attempts(server):
    yield "refused", _attempt(server)
    server.start()
    for name, fault in FAULTS.items():
        server.faults = [fault]
        yield name, _attempt(server)
    server.faults = []
    yield "None", _attempt(server)


def _attempt(server):
    """What the reader gets: weights and tokens or an error, noise, and how long it takes without the waits."""
    waits = []
    already = len(server.asked) if server else 0
    with _fd_to_file(1) as out, _fd_to_file(2) as err, _no_waiting(waits):
        outcome = _load()
    return outcome | {
        "noise": out.read_text("utf-8") + err.read_text("utf-8"),
        "seconds_waited": sum(waits),
        "requests": server.requests[already:] if server else [],
    }


def _load():
    import posembed
    from posembed.errors import CheckpointNotFoundError

    try:
        model, tokenizer = posembed.load_encoder()
    except CheckpointNotFoundError as error:
        return {"error": str(error), "cause": type(error.__cause__).__name__}
    return {"weights": digest(model), "ids": tokenizer("I do like coding")["input_ids"], "training": model.training}


def digest(model):
    together = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        together.update(name.encode() + value.contiguous().numpy().tobytes())
    return together.hexdigest()


@contextlib.contextmanager
def _fd_to_file(number):
    """Everything that is printed, by whatever means."""
    file = Path(f"fd{number}.txt").resolve()
    kept = os.dup(number)
    with file.open("wb") as sink:
        os.dup2(sink.fileno(), number)
        try:
            yield file
        finally:
            os.dup2(kept, number)
            os.close(kept)


@contextlib.contextmanager
def _no_waiting(waits):
    """The client sleeps longer and longer between its tries: count the seconds, do not spend them."""
    kept, time.sleep = time.sleep, waits.append
    try:
        yield
    finally:
        time.sleep = kept


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
