"""Lines of the core that no claim needs, each with the reason why it is there all the same.

`fencepost sweep` takes away one line after another. Where nothing breaks, the line must be listed here, by its action
and a piece of its text; a line that is listed and needed after all is reported by the tests.
"""

from __future__ import annotations

from collections.abc import Mapping

UNNEEDED: Mapping[tuple[str, str], str] = {}
