"""Pickles that a loader pays for with gigabytes or hours, each beside an honest table."""

import io
import struct
import zipfile

import torch
from made_files import next_pickle, rewritten, saved

WPE = torch.arange(8.0).reshape(4, 2)


def text(words):
    return b"X" + struct.pack("<I", len(words)) + words.encode()


def named(function):
    return b"c" + function.replace(" ", "\n").encode() + b"\n"


def called(function, number):
    return named(function) + b"\x8a\x08" + struct.pack("<q", number) + b"\x85R"


# What stands between ( and t is a tuple: all that was left on the stack.
BOMBS = {
    "hexadecimal": b"("
    + (named("_codecs encode") + b"q\xfe" + text("a") + text("latin1") + b"\x86R")
    + (b"q\xffh\xfeh\xff" + text("hex") + b"\x86R") * 40
    + b"t",
    "a bytearray of Python 2": called("__builtin__ bytearray", 2**45),
    "a bytearray": called("builtins bytearray", 2**45),
    "a tensor": called("torch FloatTensor", 2**45),
    "bytes of a storage": called("torch.storage UntypedStorage", 2**45),
    "a key to be hashed": b"}" + text("a") + b"q\xffh\xff\x86" * 99 + b"K\x01s",
    "copies": b"(]q\xff("
    + b"".join(text(f"{number}") + b"N\x86" for number in range(9**4))
    + (b"e" + named("collections OrderedDict") + b"q\xfe")
    + b"h\xfeh\xff\x85R" * 9**5
    + b"t",
    "a memo of gigabytes": b"}r\xff\xff\xff\x7f",
}


def armed(bomb, *, new):
    """A checkpoint of the new or the old format in which a bomb stands beside the table."""
    file = io.BytesIO(saved({"wpe.weight": WPE}, _use_new_zipfile_serialization=new))
    if new:
        with zipfile.ZipFile(file) as archive:
            return rewritten(file.getvalue(), {"data.pkl": beside(bomb, archive.read(archive.namelist()[0]))})
    pickles = [next_pickle(file) for _ in range(5)]
    return b"".join([*pickles[:3], beside(bomb, pickles[3]), pickles[4], file.read()])


def beside(bomb, pickle):
    assert pickle.startswith(b"\x80\x02}")
    return b"\x80\x02}" + text("bomb") + bomb + b"s" + pickle[3:]
