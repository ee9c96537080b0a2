"""Reads the list of dependencies that cargo-auditable has put into a binary, as scanners do."""

import json
import struct
import sys
import zlib


def section(elf, wanted):
    """A section of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for name, _, _, _, offset, length in headers:
        start = headers[names][4] + name
        if elf[start : elf.index(b"\0", start)] == wanted:
            return elf[offset : offset + length]
    sys.exit(f"no section {wanted.decode()}")


with open(sys.argv[1], "rb") as file:
    packages = json.loads(zlib.decompress(section(file.read(), b".dep-v0")))["packages"]
names = {package["name"] for package in packages}
if not {"oncelog", "tokio", "rusqlite"} <= names:
    sys.exit(f"the list is not ours: {sorted(names)}")
print(f"{len(packages)} packages")
