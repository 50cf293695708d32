"""The command line: commands and reports. Start with `main`.

Everything that a command does is a Python call that returns a result object: `check`, `prove`, `simulate`,
`sweep` and `verify` in the packages they live in, `evidence` and `replaying` here. Commands add options,
print, and choose the exit code.
"""
