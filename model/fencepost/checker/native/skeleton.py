"""The search loop in LLVM IR: expand states in blocks, look successors up in the table of states, append new ones.

The table has buckets of eight slots of 64 bits (a cache line), found by the upper bits of a hash, so that growing it is
one pass from the front to the back of both tables. A full bucket overflows into the next one. An empty slot is 0.

*One word*: a slot is the state itself, xor a word that no state equals. *More words*: the upper half of a slot is 32
bits of the hash and the lower half the state's index plus one; states are always compared in full.

The functions: `expand(job, first, last)` expands states from index `first` up to `last` and returns the index where it
stopped, which is before `last` when table or arrays have to grow; `seed(job)` enters state 0; `rehash(job, table,
buckets)` enters the contents of an older table.
"""

from __future__ import annotations

from fencepost.checker.native.codegen import JobLayout, words_of
from fencepost.checker.native.emit import signed
from fencepost.checker.native.layout import Layout

BLOCK_STATES = 16
"""States whose successors are computed before the first is looked up: memory is fetched meanwhile."""

SLOTS_PER_BUCKET = 8
BUCKET_BYTES = 8 * SLOTS_PER_BUCKET

_KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Odd constants with irregular bits, for the hash only."""


def _mix(name: str, a: str, b: str) -> list[str]:
    """IR for a hash step: the two halves of the product of `a` and `b`, added without carry."""
    return [
        f"%{name}a = zext i64 {a} to i128",
        f"%{name}b = zext i64 {b} to i128",
        f"%{name}p = mul i128 %{name}a, %{name}b",
        f"%{name}l = trunc i128 %{name}p to i64",
        f"%{name}s = lshr i128 %{name}p, 64",
        f"%{name}h = trunc i128 %{name}s to i64",
        f"%{name} = xor i64 %{name}l, %{name}h",
    ]


def _hash(layout: Layout) -> str:
    """`@hash`: 64 bits from the words of a state; for several words what is kept of it in a slot."""
    lines = [f"%x0 = xor i64 %w0, {signed(_KEYS[0])}"]
    if layout.words == 1:
        lines += [*_mix("m0", "%x0", str(signed(_KEYS[1]))), "ret i64 %m0"]
    else:
        previous = "%x0"
        for i in range(1, layout.words):
            lines += [f"%x{i} = xor i64 %w{i}, {signed(_KEYS[i % len(_KEYS)] ^ i)}", *_mix(f"m{i}", previous, f"%x{i}")]
            previous = f"%m{i}"
        # Bit 32 is always set: no hash is 0, so an empty slot matches none.
        lines += [f"%kept = and i64 {previous}, {-(1 << 32)}", f"%some = or i64 %kept, {1 << 32}", "ret i64 %some"]
    return _function("internal i64 @hash", words_of(layout), lines, "alwaysinline")


_HOME = """
define internal i64 @home(i64 %hash, i64 %buckets) nounwind alwaysinline {
  %a = zext i64 %hash to i128
  %b = zext i64 %buckets to i128
  %p = mul i128 %a, %b
  %s = lshr i128 %p, 64
  %r = trunc i128 %s to i64
  ret i64 %r
}
"""

_RECORD = """
define internal void @record(ptr %job, i64 %slot, i64 %state, i64 %command) nounwind noinline cold {{
  %offset = shl i64 %slot, 1
  %place = add i64 %offset, {found}
  %p = getelementptr i64, ptr %job, i64 %place
  %old = load i64, ptr %p
  %none = icmp slt i64 %old, 0
  br i1 %none, label %first, label %exit
first:
  store i64 %state, ptr %p
  %q = getelementptr i64, ptr %p, i64 1
  store i64 %command, ptr %q
  br label %exit
exit:
  ret void
}}
"""

_STUCK = """
define internal void @stuck(ptr %job, i64 %state, i64 %blocked) nounwind noinline cold {{
  %bp = getelementptr i64, ptr %job, i64 {blocked}
  %now = load i64, ptr %bp
  %free = icmp eq i64 %now, %blocked
  %place = select i1 %free, i64 {dead}, i64 {boundary}
  %p = getelementptr i64, ptr %job, i64 %place
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  %first = icmp eq i64 %old, 0
  br i1 %first, label %note, label %exit
note:
  %q = getelementptr i64, ptr %p, i64 1
  store i64 %state, ptr %q
  br label %exit
exit:
  ret void
}}
"""

# Give the slot for a state that is not in the table, from bucket %b on; every function that enters states has these
# lines. %bucket_ptr and %mz are left for the block `insert`.
_EMPTY_SLOT = """
  %lane8 = call i8 @llvm.cttz.i8(i8 %mz, i1 true)
  %lane = zext i8 %lane8 to i64
  %slotp = getelementptr i64, ptr %bp, i64 %lane
"""

_DECLARATIONS = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i8 @llvm.cttz.i8(i8, i1)
declare i64 @llvm.umin.i64(i64, i64)
"""


def skeleton(layout: Layout, job: JobLayout, *, steps: int, check: bool, most: int) -> str:
    """The text of all functions but those of `codegen`; `most` successors can come from one state."""
    parts = [
        _hash(layout),
        _HOME,
        _RECORD.format(found=job.found),
        _STUCK.format(blocked=job.BLOCKED, dead=job.DEAD, boundary=job.BOUNDARY),
        _seed(layout, job, check=check),
        _rehash(layout, job),
        _expand(layout, job, steps=steps, check=check, most=most),
        _DECLARATIONS,
    ]
    return "\n".join(parts)


def _function(head: str, parameters: str, lines: list[str], attributes: str) -> str:
    return "\n".join([f"define {head}({parameters}) nounwind {attributes} {{", *[f"  {line}" for line in lines], "}"])


def _load(name: str, place: int, kind: str) -> str:
    return f"""
  %{name}.p = getelementptr i64, ptr %job, i64 {place}
  %{name} = load {kind}, ptr %{name}.p"""


def _words(layout: Layout, name: str, pointer: str) -> str:
    """Load the words of a state at `pointer` as %name0, %name1, …"""
    lines = []
    for i in range(layout.words):
        lines.append(f"  %{name}{i}.p = getelementptr i64, ptr {pointer}, i64 {i}")
        lines.append(f"  %{name}{i} = load i64, ptr %{name}{i}.p")
    return "\n".join(lines)


def _splat(name: str, value: str) -> str:
    """%name: eight times `value`."""
    return f"""
  %{name}.one = insertelement <8 x i64> poison, i64 {value}, i64 0
  %{name} = shufflevector <8 x i64> %{name}.one, <8 x i64> poison, <8 x i32> zeroinitializer"""


def _slot(layout: Layout, index: str) -> str:
    """%slot: what is stored for the state with words %s… and hash %hash."""
    if layout.words == 1:
        return f"  %slot = xor i64 %s0, {signed(layout.unused)}"
    return f"  %next = add i64 {index}, 1\n  %slot = or i64 %hash, %next"


def _seed(layout: Layout, job: JobLayout, *, check: bool) -> str:
    words = words_of(layout, "%s")
    return f"""
define void @seed(ptr %job) nounwind {{
entry:{_load("states", job.STATES, "ptr")}{_load("table", job.TABLE, "ptr")}{_load("buckets", job.BUCKETS, "i64")}
{_words(layout, "s", "%states")}
  %hash = call i64 @hash({words})
  %b = call i64 @home(i64 %hash, i64 %buckets)
{_slot(layout, "0")}
  %place = mul i64 %b, {BUCKET_BYTES}
  %slotp = getelementptr i8, ptr %table, i64 %place
  store i64 %slot, ptr %slotp
  {f"call void @check({words}, ptr %job, i64 0)" if check else ""}
  ret void
}}
"""


def _rehash(layout: Layout, job: JobLayout) -> str:
    if layout.words == 1:
        hashed = f"  %s0 = xor i64 %slot, {signed(layout.unused)}\n  %hash = call i64 @hash(i64 %s0)"
    else:
        hashed = f"  %hash = and i64 %slot, {-(1 << 32)}"
    return f"""
define void @rehash(ptr %job, ptr %old, i64 %oldbuckets) nounwind {{
entry:{_load("table", job.TABLE, "ptr")}{_load("buckets", job.BUCKETS, "i64")}
  %slots = mul i64 %oldbuckets, {SLOTS_PER_BUCKET}
  br label %each
each:
  %i = phi i64 [0, %entry], [%i1, %on]
  %more = icmp ult i64 %i, %slots
  br i1 %more, label %look, label %exit
look:
  %i1 = add i64 %i, 1
  %from = getelementptr i64, ptr %old, i64 %i
  %slot = load i64, ptr %from
  %none = icmp eq i64 %slot, 0
  br i1 %none, label %on, label %move
move:
{hashed}
  %b0 = call i64 @home(i64 %hash, i64 %buckets)
  br label %probe
probe:
  %b = phi i64 [%b0, %move], [%bn, %full]
  %place = mul i64 %b, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
  %v = load <8 x i64>, ptr %bp, align 64
  %ez = icmp eq <8 x i64> %v, zeroinitializer
  %mz = bitcast <8 x i1> %ez to i8
  %isfull = icmp eq i8 %mz, 0
  br i1 %isfull, label %full, label %insert
full:
  %bn0 = add i64 %b, 1
  %over = icmp eq i64 %bn0, %buckets
  %bn = select i1 %over, i64 0, i64 %bn0
  br label %probe
insert:{_EMPTY_SLOT}
  store i64 %slot, ptr %slotp
  br label %on
on:
  br label %each
exit:
  ret void
}}
"""


def _expand(layout: Layout, job: JobLayout, *, steps: int, check: bool, most: int) -> str:
    count, stride = layout.words, 8 * (layout.words + 2)
    words = words_of(layout, "%w")
    calls, out = [], "%out"
    for i in range(steps):
        calls.append(f"  %out{i} = call ptr @step{i}({words}, ptr %out, ptr %job, i64 %state)".replace("%out,", f"{out},"))
        out = f"%out{i}"
    return f"""
define i64 @expand(ptr noalias %job, i64 %first, i64 %last) nounwind {{
entry:{_load("states", job.STATES, "ptr")}{_load("parents", job.PARENTS, "ptr")}{_load("table", job.TABLE, "ptr")}
{_load("buckets", job.BUCKETS, "i64")}{_load("limit", job.LIMIT, "i64")}{_load("buffer", job.BUFFER, "ptr")}
{_load("count0", job.COUNT, "i64")}
  br label %block
block:
  %i = phi i64 [%first, %entry], [%inext, %blockend]
  %count = phi i64 [%count0, %entry], [%counted, %blockend]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %room, label %exit
room:
  %most = add i64 %count, {BLOCK_STATES * most}
  %enough = icmp ule i64 %most, %limit
  br i1 %enough, label %start, label %exit
start:
  %left = sub i64 %last, %i
  %n = call i64 @llvm.umin.i64(i64 %left, i64 {BLOCK_STATES})
  %inext = add i64 %i, %n
  br label %gen
gen:
  %state = phi i64 [%i, %start], [%state1, %genend]
  %out = phi ptr [%buffer, %start], [{out}, %genend]
  %wordat = mul i64 %state, {count}
  %sp = getelementptr i64, ptr %states, i64 %wordat
{_words(layout, "w", "%sp")}
{_load("blocked", job.BLOCKED, "i64")}
{chr(10).join(calls)}
  %isstuck = icmp eq ptr %out, {out}
  br i1 %isstuck, label %stuck, label %genend
stuck:
  call void @stuck(ptr %job, i64 %state, i64 %blocked)
  br label %genend
genend:
  %state1 = add i64 %state, 1
  %genmore = icmp ult i64 %state1, %inext
  br i1 %genmore, label %gen, label %fetch
fetch:
  %f = phi ptr [%buffer, %genend], [%fnext, %fetching]
  %fetchmore = icmp ult ptr %f, {out}
  br i1 %fetchmore, label %fetching, label %{"look" if count == 1 else "peek"}
fetching:
  %fnext = getelementptr i8, ptr %f, i64 {stride}
{_words(layout, "f", "%f")}
  %fhash = call i64 @hash({words_of(layout, "%f")})
  %fb = call i64 @home(i64 %fhash, i64 %buckets)
  %fplace = mul i64 %fb, {BUCKET_BYTES}
  %fp = getelementptr i8, ptr %table, i64 %fplace
  call void @llvm.prefetch.p0(ptr %fp, i32 0, i32 3, i32 1)
  %fkeep = getelementptr i64, ptr %f, i64 {count + 1}
  store i64 {"%fb" if count == 1 else "%fhash"}, ptr %fkeep
  br label %fetch
{_peek(layout, out) if count > 1 else ""}
look:
  %e = phi ptr [%buffer, %{"fetch" if count == 1 else "peek"}], [%enext, %on]
  %cnt = phi i64 [%count, %{"fetch" if count == 1 else "peek"}], [%cnt1, %on]
  %lookmore = icmp ult ptr %e, {out}
  br i1 %lookmore, label %looking, label %checks
looking:
  %enext = getelementptr i8, ptr %e, i64 {stride}
{_words(layout, "s", "%e")}
  %kp = getelementptr i64, ptr %e, i64 {count + 1}
  %kept = load i64, ptr %kp
{_probe(layout)}
insert:{_EMPTY_SLOT}
  store i64 %slot, ptr %slotp
  %newat = mul i64 %cnt, {count}
  %newp = getelementptr i64, ptr %states, i64 %newat
{_store_words(layout)}
  %ep = getelementptr i64, ptr %e, i64 {count}
  %parent = load i64, ptr %ep
  %parent32 = trunc i64 %parent to i32
  %pp = getelementptr i32, ptr %parents, i64 %cnt
  store i32 %parent32, ptr %pp
  %cntnew = add i64 %cnt, 1
  br label %on
on:
  %cnt1 = phi i64 [%cnt, %known], [%cntnew, %insert]
  br label %look
checks:
  %counted = phi i64 [%cnt, %look]
  br label %{"check" if check else "blockend"}
{_checks(layout) if check else ""}
blockend:
  br label %block
exit:
{_load("countp", job.COUNT, "i64")}
  store i64 %count, ptr %countp.p
  ret i64 %i
}}
"""


def _store_words(layout: Layout) -> str:
    return "\n".join(
        f"  %new{i}.p = getelementptr i64, ptr %newp, i64 {i}\n  store i64 %s{i}, ptr %new{i}.p"
        for i in range(layout.words)
    )


def _checks(layout: Layout) -> str:
    """Evaluate the claims over every state of the block that is new."""
    return f"""
check:
  %c = phi i64 [%count, %checks], [%cnext, %checking]
  %checkmore = icmp ult i64 %c, %counted
  br i1 %checkmore, label %checking, label %blockend
checking:
  %cnext = add i64 %c, 1
  %cat = mul i64 %c, {layout.words}
  %cp = getelementptr i64, ptr %states, i64 %cat
{_words(layout, "c", "%cp")}
  call void @check({words_of(layout, "%c")}, ptr %job, i64 %c)
  br label %check
"""


def _peek(layout: Layout, out: str) -> str:
    """Fetch the states that the first matching slots speak of."""
    stride = 8 * (layout.words + 2)
    return f"""
peek:
  %p = phi ptr [%buffer, %fetch], [%pnext, %peeked]
  %peekmore = icmp ult ptr %p, {out}
  br i1 %peekmore, label %peeking, label %look
peeking:
  %pnext = getelementptr i8, ptr %p, i64 {stride}
  %pkp = getelementptr i64, ptr %p, i64 {layout.words + 1}
  %phash = load i64, ptr %pkp
  %pb = call i64 @home(i64 %phash, i64 %buckets)
  %pplace = mul i64 %pb, {BUCKET_BYTES}
  %pbp = getelementptr i8, ptr %table, i64 %pplace
  %pv = load <8 x i64>, ptr %pbp, align 64
  %phigh = lshr <8 x i64> %pv, splat (i64 32)
  %pshort = lshr i64 %phash, 32{_splat("psame", "%pshort")}
  %pe = icmp eq <8 x i64> %phigh, %psame
  %pm = bitcast <8 x i1> %pe to i8
  %pnone = icmp eq i8 %pm, 0
  br i1 %pnone, label %peeked, label %peekfetch
peekfetch:
  %plane8 = call i8 @llvm.cttz.i8(i8 %pm, i1 true)
  %plane = zext i8 %plane8 to i64
  %pslotp = getelementptr i64, ptr %pbp, i64 %plane
  %pslot = load i64, ptr %pslotp
  %plow = and i64 %pslot, {(1 << 32) - 1}
  %pindex = sub i64 %plow, 1
  %pat = mul i64 %pindex, {layout.words}
  %psp = getelementptr i64, ptr %states, i64 %pat
  call void @llvm.prefetch.p0(ptr %psp, i32 0, i32 3, i32 1)
  br label %peeked
peeked:
  br label %peek
"""


def _probe(layout: Layout) -> str:
    """Look for the state %s…; ends in `known`, or in `insert` with %bp and %mz naming an empty slot."""
    if layout.words == 1:
        start = "\n".join([_slot(layout, "%cnt"), _splat("same", "%slot"), "  br label %probe"])
        home, match = "%kept", "  %match = icmp eq <8 x i64> %v, %same"
        found, candidate = "known", ""
    else:
        start = "\n".join(
            [
                "  %hash = add i64 %kept, 0",
                "  %home = call i64 @home(i64 %hash, i64 %buckets)",
                _slot(layout, "%cnt"),
                f"  %short = lshr i64 %hash, 32{_splat('same', '%short')}",
                "  br label %probe",
            ]
        )
        home = "%home"
        match = "  %high = lshr <8 x i64> %v, splat (i64 32)\n  %match = icmp eq <8 x i64> %high, %same"
        found, candidate = "candidate", _candidate(layout)
    return f"""
{start}
probe:
  %b = phi i64 [{home}, %looking], [%bn, %full]
  %place = mul i64 %b, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
  %v = load <8 x i64>, ptr %bp, align 64
{match}
  %m = bitcast <8 x i1> %match to i8
  %hit = icmp ne i8 %m, 0
  br i1 %hit, label %{found}, label %miss
{candidate}
known:
  br label %on
miss:
  %ez = icmp eq <8 x i64> %v, zeroinitializer
  %mz = bitcast <8 x i1> %ez to i8
  %isfull = icmp eq i8 %mz, 0
  br i1 %isfull, label %full, label %insert
full:
  %bn0 = add i64 %b, 1
  %over = icmp eq i64 %bn0, %buckets
  %bn = select i1 %over, i64 0, i64 %bn0
  br label %probe
"""


def _candidate(layout: Layout) -> str:
    """Compare in full the states whose 32 bits of hash are the same."""
    compare = []
    same = ""
    for i in range(layout.words):
        compare.append(f"  %eq{i} = icmp eq i64 %s{i}, %k{i}")
        if i:
            compare.append(f"  %all{i} = and i1 {same}, %eq{i}")
        same = f"%all{i}" if i else "%eq0"
    return f"""
candidate:
  %cm = phi i8 [%m, %probe], [%cmrest, %other]
  %clane8 = call i8 @llvm.cttz.i8(i8 %cm, i1 true)
  %clane = zext i8 %clane8 to i64
  %cslotp = getelementptr i64, ptr %bp, i64 %clane
  %cslot = load i64, ptr %cslotp
  %clow = and i64 %cslot, {(1 << 32) - 1}
  %cindex = sub i64 %clow, 1
  %cat0 = mul i64 %cindex, {layout.words}
  %csp = getelementptr i64, ptr %states, i64 %cat0
{_words(layout, "k", "%csp")}
{chr(10).join(compare)}
  br i1 {same}, label %known, label %other
other:
  %cmless = sub i8 %cm, 1
  %cmrest = and i8 %cm, %cmless
  %cnone = icmp eq i8 %cmrest, 0
  br i1 %cnone, label %miss, label %candidate
"""
