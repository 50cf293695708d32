"""A store that accepts the latest owner's commit after expiry, as long as nobody has taken over."""

from fencepost.model.core import core
from fencepost.model.mutate import without

late = without(core, "late commits", decide_commit=('"lease-expired"',))
