"""The pieces of one course: which faults each has, and what an answer on paper is then.

Of each piece one form is drawn. A form is what stands in the places that its code leaves open, and its faults; each
fault with the properties that it breaks, and a hint.
"""

TURN = "In one step, by which angle does each pair turn? Compare with the docstring."
FIRST = "Without padding, the first token of a text reads row 1, which is padding's."
BEHIND = "Behind a text the count stands still, and padding reads the row of the last token."
ALONG = "Two texts of a batch: along which of the axes does the count go?"
ORDER = "Give it a head of six rows that are numbered 0 to 5: they do not come out as 0, 2, 4, 1, 3, 5."
SECOND = "Print the slopes for 12 heads beside those for 16: are they every second one, from the first on?"
GROWN = "At which position is the first query? Compare with the first key, for a past of 0."
ZERO = "At which position is the first query behind a past of three tokens?"
HIDDEN = "Call it with one new token and a past of three: to which of them does it attend?"
COUNTED = "Run a text alone and with padding in front: which row of places does its first token read?"
SEEN = "Run a text alone and with padding in front: which tokens get weight?"
WIDE = "Pass an identity matrix as values, and count what each query sees."
BEYOND = "What does distance 200 have, and what distance 128?"
BESIDE = "Let each score be its offset: what comes out at query 0 and key 0?"
HALF = "Which dtype do angles have for x in bfloat16? Print it."

COUNT, STANDS = "mask.long().cumsum(dim=1) * mask.long()", "mask.long().cumsum(dim=1)"
LATE, AT_ZERO, RIGHT_PLACE = "so_far + torch.arange(n)", "torch.arange(n)", "so_far - n + torch.arange(n)"
ROWS = "(mask.long().cumsum(dim=1) - 1).clamp(min=0)"
TOKENS, ALL = "mask[:, None, :].bool()", "torch.ones(len(ids), 1, time).bool()"
EXPONENT, ROUNDED = {"exponent": (["turn"], TURN)}, {"rounded": (["once", "turn", "shift"], HALF)}
GROWS, HIDES = {"cache grown": (["parts", "offset"], GROWN)}, {"past hidden": (["parts", "seen"], HIDDEN)}
BEGINS = {"from zero": (["parts", "offset"], ZERO)}
FIRST_ROW, PADS_READ = {"first row": (["rows"], FIRST)}, {"pads read": (["rows"], BEHIND)}
PADS_COUNTED, PADS_SEEN = {"pads counted": (["padding", "rows"], COUNTED)}, {"pads seen": (["padding", "seen"], SEEN)}

FORMS = {
    "a": [
        ({"a_steps": "torch.arange(pairs) / max(pairs - 1, 1)"}, {}),
        ({"a_steps": "torch.arange(pairs) / max(pairs, 1)"}, EXPONENT),
    ],
    "b": [
        ({"b_count": COUNT, "b_row": "count + 1"}, {}),
        ({"b_count": STANDS, "b_row": "count.clamp(min=1)"}, FIRST_ROW | PADS_READ),
        ({"b_count": STANDS, "b_row": "count + 1"}, PADS_READ),
        ({"b_count": COUNT, "b_row": "count.clamp(min=1)"}, FIRST_ROW),
        ({"b_count": COUNT.replace("1", "0"), "b_row": "count + 1"}, {"axis": (["rows", "padding"], ALONG)}),
    ],
    "c": [({"c_heads": "2, rows // n_heads // 2"}, {"layout": (["layouts"], ORDER)})],
    "d": [
        ({"d_between": "(2 * torch.arange(n_heads - power) + 1)", "fewest_d": "none"}, {}),
        ({"d_between": "torch.arange(1, n_heads - power + 1)", "fewest_d": 6}, {"slopes": (["heads"], SECOND)}),
        ({"d_between": "2 * torch.arange(1, n_heads - power + 1)", "fewest_d": 3}, {"slopes": (["heads"], SECOND)}),
    ],
    "e": [
        ({"e_positions": LATE, "e_diagonal": "1"}, GROWS | HIDES),
        ({"e_positions": AT_ZERO, "e_diagonal": "1"}, BEGINS | HIDES),
        ({"e_positions": RIGHT_PLACE, "e_diagonal": "1"}, HIDES),
        ({"e_positions": LATE, "e_diagonal": "so_far - n + 1"}, GROWS),
        ({"e_positions": AT_ZERO, "e_diagonal": "so_far - n + 1"}, BEGINS),
    ],
    "f": [
        ({"f_places": ROWS, "f_keys": TOKENS}, {}),
        ({"f_places": ":time", "f_keys": TOKENS}, PADS_COUNTED),
        ({"f_places": ROWS, "f_keys": ALL}, PADS_SEEN),
        ({"f_places": ":time", "f_keys": ALL}, PADS_COUNTED | PADS_SEEN),
    ],
    "g": [
        ({"g_first": "> m - n - window"}, {}),
        ({"g_first": ">= m - n - window"}, {"window": (["seen"], WIDE)}),
    ],
    "h": [
        ({"h_far": "shared.clamp(max=15)", "nearest_h": "none"}, {}),
        ({"h_far": "shared", "nearest_h": 128}, {"limit": (["limit"], BEYOND)}),
    ],
    "i": [({"i_side": "(1, 0)"}, {"neighbour": (["offset"], BESIDE)})],
    "j": [
        ({"j_sign": "-2", "j_dtype": "x.dtype", "twin_j": 257}, EXPONENT | ROUNDED),
        ({"j_sign": "-2", "j_dtype": "torch.float32", "twin_j": "none"}, EXPONENT),
        ({"j_sign": "-1", "j_dtype": "x.dtype", "twin_j": 257}, ROUNDED),
    ],
}


def make(draws):
    """No files, and what is true."""
    forms = draws.until(
        lambda draws: {letter: draws.one(of_piece) for letter, of_piece in FORMS.items()},
        lambda found: 2 <= sum(not faults for _, faults in found.values()) <= 4,
    )
    truth = {
        "faults": {letter: {fault: told[0] for fault, told in each.items()} for letter, (_, each) in forms.items()}
    }
    truth["hints"] = {fault: told[1] for _, each in forms.values() for fault, told in each.items()}
    for letter, (places, _) in forms.items():
        truth |= places | {f"found_{letter}": {fault: those[0] for fault, those in truth["faults"][letter].items()}}
    return {}, truth | {f"{name}_said": repr(truth[name]) for name in ("fewest_d", "nearest_h", "twin_j")}
