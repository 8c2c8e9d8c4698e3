"""The wire format: FORMAT.md is the source, these modules are one reading of it."""
