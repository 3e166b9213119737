"""A filter of system calls under which a process can start threads and no other processes, for bubblewrap.

A program that starts processes without end brings a machine down before anybody outside can stop it. So does one that
keeps in memory what belongs to no process, which nobody counts.
"""

import os
import platform
import struct

# Of the machines that are known: its number for the kernel's audit, that of clone, and those of fork and vfork, of
# memfd_create and shmget, and of unshare, after which a process may mount a file system in memory.
MACHINES = {
    "x86_64": (0xC000003E, 56, (57, 58, 319, 29, 272)),
    "aarch64": (0xC00000B7, 220, (279, 194, 97)),
}
CLONE3, CLONE_THREAD = 435, 0x10000
ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM; ENOSYS, after which clone is tried
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16


def program():
    """The filter in the kernel's form; None on a machine that is not known."""
    if platform.machine() not in MACHINES:
        return None
    machine, clone, refused = MACHINES[platform.machine()]
    lines = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, machine), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]
    # The same calls have other numbers from here on.
    lines += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, REFUSE)]
    for number in refused:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    lines += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, UNKNOWN), (EQUAL, 1, 0, clone), (RETURN, 0, 0, ALLOW)]
    lines += [(LOAD, 0, 0, FIRST_ARGUMENT), (AND, 0, 0, CLONE_THREAD), (EQUAL, 0, 1, 0)]
    lines += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def descriptor():
    """An open file that holds the filter, for `bwrap --seccomp`; None where there is none."""
    code = program()
    if code is None:
        return None
    held = os.memfd_create("filter")
    os.write(held, code)
    os.lseek(held, 0, os.SEEK_SET)
    return held
