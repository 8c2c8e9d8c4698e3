"""Settings as 32 bits; FORMAT.md, 7."""

import hashlib


def fingerprint(settings: str, seed: int) -> int:
    """`settings` in the one-string form with every setting spelled out."""
    text = settings + "\n" + str(seed)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=4).digest(), "little")
