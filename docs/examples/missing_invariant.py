"""The waiting room without one of its supporting invariants: a true claim that induction cannot show."""

from pathlib import Path

from fencepost.checker import load
from fencepost.properties import Claims

whole = load(str(Path(__file__).with_name("waiting_room.py")))
room = whole.protocol
fewer = Claims(
    "fewer invariants",
    {name: claim for name, claim in whole.claims.claims.items() if name != "only_given_numbers_are_called"},
)
