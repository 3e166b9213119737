"""How long the models of the book take in a reader's browser: a typed character, and a whole text of 64 read anew.

Usage: python -m benchmarks.in_a_page [SLOWDOWN]

It needs Chromium. The slowdown is Chromium's own for the processor, 4 by default: a desktop as slow as a phone.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from posembed.stored import load_model
from posembed.widgets.base import STATIC
from posembed.widgets.eight_bit import script

NAMES = ("causal-nopos", "causal-learned", "causal-alibi", "causal-rope")
N_CHARACTERS, REPEATS = 64, 30
# Of each repeat: the last character typed behind all others, and then the first one changed.
MEASURE = """async ([name, n, repeats]) => {
  const model = await unpacked(posembedModels[name]);
  const ids = range(0, n - 1).map((k) => 2 + ((7 * k) % 60));
  const places = range(0, n - 1);
  const time = (work) => { const start = performance.now(); work(); return performance.now() - start; };
  const typed = [], whole = [];
  for (let k = 0; k < repeats; k++) {
    const last = run(model, ids.slice(0, -1), places.slice(0, -1), true);
    typed.push(time(() => run(model, ids, places, true, last)));
    whole.push(time(() => run(model, ids, places, true)));
  }
  return [typed, whole];
}"""


def measure(slowdown):
    """Milliseconds a model for a typed character and for a whole text: the median of many."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from browser.chromium import find_chromium

    found = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        engine = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in ("kit.js", "transformer.js"))
        (Path(folder) / "engine.js").write_text(engine.replace("export ", ""), encoding="utf-8")
        page = browser.new_page()
        for name in NAMES:
            (Path(folder) / f"{name}.js").write_text(script(name, load_model(name)), encoding="utf-8", newline="")
        scripts = "".join(f'<script src="{name}.js"></script>' for name in ("engine", *NAMES))
        (Path(folder) / "page.html").write_text(f'<!doctype html><meta charset="utf-8">{scripts}', encoding="utf-8")
        page.goto((Path(folder) / "page.html").as_uri())
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        for name in NAMES:
            times = page.evaluate(MEASURE, [name, N_CHARACTERS, REPEATS])
            found[name] = [round(statistics.median(each), 1) for each in times]
        browser.close()
    return found


if __name__ == "__main__":
    rate = float(sys.argv[1]) if sys.argv[1:] else 4.0
    print(json.dumps({"slowdown": rate, "ms a typed character, and a text of 64": measure(rate)}, indent=1))
