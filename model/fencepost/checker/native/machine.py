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
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=int(__import__('os').environ.get('MODE','O2/2').split('/')[1])
        )
        module = llvm.parse_assembly(text)
        mode=__import__('os').environ.get('MODE','O2/2').split('/')[0]
        pto=llvm.create_pipeline_tuning_options(speed_level={"O2":2,"O3":3,"O1":1}.get(mode,2))
        pto.loop_unrolling=False; pto.loop_vectorization=False; pto.slp_vectorization=False
        pb=llvm.create_pass_builder(target,pto)
        if mode[0]=="O": pm=pb.getModulePassManager()
        else:
            pm=llvm.create_new_module_pass_manager()
            pm.add_always_inliner_pass()
            for c in mode:
                {"s":pm.add_simplify_cfg_pass,"i":pm.add_instruction_combine_pass,"k":pm.add_sinking_pass,"d":pm.add_dead_code_elimination_pass,"g":pm.add_new_gvn_pass,"a":pm.add_aggressive_instcombine_pass,"j":pm.add_jump_threading_pass,"r":pm.add_reassociate_pass,"n":lambda:None}[c]()
        pm.run(module,pb)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()

    def function(self, name: str, result: Any, *parameters: Any) -> Callable[..., Any]:
        """The function `name` with ctypes for its result and parameters."""
        address = self._engine.get_function_address(name)
        made: Callable[..., Any] = ctypes.CFUNCTYPE(result, *parameters)(address)
        return made
