"""LLVM IR text to machine code of this processor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from fencepost.checker.native.cache import CodeCache


class Machine:
    """Compiled functions; they live as long as this object."""

    def __init__(self, made: bytes) -> None:
        import llvmlite.binding as llvm

        _initialize()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(optimise=False))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(made))
        self._engine.finalize_object()

    def function(self, name: str, result: Any, *parameters: Any) -> Callable[..., Any]:
        """The function `name` with ctypes for its result and parameters."""
        address = self._engine.get_function_address(name)
        made: Callable[..., Any] = ctypes.CFUNCTYPE(result, *parameters)(address)
        return made


def compiled(text: str, *, optimise: bool) -> bytes:
    """The object for IR text.

    The text is written so that passes over IR gain nothing: they cost three times as much as the rest, and
    turn branches that are guessed right into arithmetic. Inlining is all that is done to it; `optimise` is
    about how instructions are chosen.
    """
    import llvmlite.binding as llvm

    _initialize()
    target = _target(optimise=optimise)
    module = llvm.parse_assembly(text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=0)))
    made: bytes = target.emit_object(module)
    return made


def code_cache() -> CodeCache:
    """The cache for this processor and compiler."""
    import llvmlite
    import llvmlite.binding as llvm

    versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    return CodeCache(f"{versions} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}")


def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target(*, optimise: bool) -> Any:
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2 if optimise else 0,
        jit=True,
    )
