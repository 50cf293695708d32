"""An operator who can end a lease by hand, as many consoles offer."""

from fencepost.model import State, when
from fencepost.model.core import core

operated = core.extended("core with an operator")
operated.switch("operator_acts", "an operator ends leases by hand")


@operated.action("operator", switch="operator_acts")
def break_lease(s: State) -> None:
    """An operator ends the lease. Its owner is not told."""
    when(s.live)

    s.live = False
