"""LLVM IR text to machine code of this processor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


class Machine:
    """Compiled functions; they live as long as this object."""

    def __init__(self, text: str) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
        )
        module = llvm.parse_assembly(text)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        passes = llvm.create_pass_builder(target, options)
        passes.getModulePassManager().run(module, passes)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()

    def function(self, name: str, result: Any, *parameters: Any) -> Callable[..., Any]:
        """The function `name` with ctypes for its result and parameters."""
        address = self._engine.get_function_address(name)
        made: Callable[..., Any] = ctypes.CFUNCTYPE(result, *parameters)(address)
        return made
