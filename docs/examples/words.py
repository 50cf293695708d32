"""A state in which every kind of value occurs: what the tables of the language page speak about."""

from fencepost.model import (
    BOOLEAN,
    HISTORY,
    Counter,
    Enumeration,
    Family,
    Optional,
    Protocol,
    Range,
    Record,
    Sort,
    absent,
)

workers = Sort("worker")
letters = Sort("letter")
versions = Counter("version")
levels = Range(0, 2)
Phase = Enumeration("Phase", "idle", "held", "down")
Lease = Record("Lease", worker=workers, version=versions)
Answer = Enumeration("Answer", "ok", "taken")

p = Protocol("words", answers=Answer)
p.variable("flag", BOOLEAN, False, home="store", meaning="a boolean")
p.variable("n", versions, 0, home="store", meaning="a number without an end")
p.variable("level", levels, 0, home="store", meaning="0, 1 or 2")
p.variable("phase", Phase, Phase.idle, home="store", meaning="one of three names")
p.variable("holder", Optional(workers), absent, home="store", meaning="a worker, or nobody")
p.variable("lease", Optional(Lease), absent, home="store", meaning="a record, or none")
p.variable("up", Family(workers, of=BOOLEAN), True, home="worker", meaning="a boolean for each worker")
p.variable("idle", Family(workers, of=BOOLEAN), True, home="worker", meaning="another one")
p.variable("ticks", Family(workers, of=versions), 0, home="worker", meaning="a number for each worker")
p.variable("log", Family(versions, of=Optional(workers)), absent, home="store", meaning="a worker each")
p.variable("sent", Family(letters, of=BOOLEAN), False, home="network", meaning="which letters are in use")
p.variable("first", Optional(workers), absent, home=HISTORY, meaning="who was first; for claims only")
p.switch("crash", "a worker dies")
p.scope("small", sizes={"worker": 2, "letter": 2}, bounds={"version": 2}, switches=("crash",), why="tests")
