"""The table of states in LLVM IR: open addressing in buckets of one cache line.

The bucket of a state is given by the upper bits of its hash, so that growing is one pass through the table. A
bucket fills from the front and overflows into the next one; nothing is ever removed. So where a state is in
the table, it is before the first empty slot on its way.

*States*, where a state is one word: eight slots that hold the word xor a pattern that no state has; 0 means
empty.

*Indices*, for more words: eight slots of 32 bits of the hash and the state's index plus one; 0 means empty.
States are compared in full; the hash only says which. (Whole states of two words were tried: slower, and a
third more memory.)
"""

from __future__ import annotations

from fencepost.checker.native.emit import signed
from fencepost.checker.native.layout import Layout

BUCKET_SLOTS = 8
BUCKET_BYTES = 8 * BUCKET_SLOTS

_KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Odd constants with irregular bits, for the hash only."""

DECLARATIONS = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.umin.i64(i64, i64)
"""

HOME = """
define internal i64 @home(i64 %hash, i64 %buckets) nounwind alwaysinline {
  %high = lshr i64 %hash, 32
  %scaled = mul i64 %high, %buckets
  %bucket = lshr i64 %scaled, 32
  ret i64 %bucket
}
"""
"""The bucket of a hash, by its upper 32 bits; there are fewer than 2**32 buckets."""

LOW_HALF = (1 << 32) - 1


def holds_states(layout: Layout) -> bool:
    """Whether the table holds whole states rather than indices."""
    return layout.unused is not None


def words_of(layout: Layout, prefix: str) -> str:
    """The words of a state as parameters or arguments."""
    return ", ".join(f"i64 {prefix}{i}" for i in range(layout.words))


def load_words(layout: Layout, name: str, pointer: str) -> str:
    """Load the words of a state at `pointer` as %name0, %name1 and so on."""
    lines = []
    for i in range(layout.words):
        lines.append(f"  %{name}{i}.p = getelementptr i64, ptr {pointer}, i64 {i}")
        lines.append(f"  %{name}{i} = load i64, ptr %{name}{i}.p")
    return "\n".join(lines)


def hash_function(layout: Layout) -> str:
    """`@hash`: 64 bits from the words of a state; where the table holds indices, what it keeps of them."""
    lines = [f"%x0 = xor i64 %w0, {signed(_KEYS[0])}"]
    last = "%x0"
    if layout.words == 1:
        lines += _mix("m0", "%x0", str(signed(_KEYS[1])))
        last = "%m0"
    for i in range(1, layout.words):
        lines.append(f"%x{i} = xor i64 %w{i}, {signed(_KEYS[i % len(_KEYS)] ^ i)}")
        lines += _mix(f"m{i}", last, f"%x{i}")
        last = f"%m{i}"
    if not holds_states(layout):
        # Bit 32 is always set: no hash is 0, so an empty slot matches none.
        lines += [f"%kept = and i64 {last}, {-(1 << 32)}", f"%some = or i64 %kept, {1 << 32}"]
        last = "%some"
    body = "\n".join(f"  {line}" for line in [*lines, f"ret i64 {last}"])
    return f"define internal i64 @hash({words_of(layout, '%w')}) nounwind alwaysinline {{\n{body}\n}}"


def _mix(name: str, a: str, b: str) -> list[str]:
    """A step of the hash: the two halves of the product of `a` and `b`, added without carry."""
    return [
        f"%{name}a = zext i64 {a} to i128",
        f"%{name}b = zext i64 {b} to i128",
        f"%{name}p = mul i128 %{name}a, %{name}b",
        f"%{name}l = trunc i128 %{name}p to i64",
        f"%{name}s = lshr i128 %{name}p, 64",
        f"%{name}h = trunc i128 %{name}s to i64",
        f"%{name} = xor i64 %{name}l, %{name}h",
    ]


def fetch_function(layout: Layout) -> str:
    """`@fetch`: start to load the bucket of a state; gives what its entry keeps: its bucket, or its hash."""
    kept = "%b" if holds_states(layout) else "%hash"
    return f"""
define internal i64 @fetch({words_of(layout, "%w")}, ptr %table, i64 %buckets) nounwind alwaysinline {{
  %hash = call i64 @hash({words_of(layout, "%w")})
  %b = call i64 @home(i64 %hash, i64 %buckets)
  %place = mul i64 %b, {BUCKET_BYTES}
  %p = getelementptr i8, ptr %table, i64 %place
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  ret i64 {kept}
}}
"""


def store_slot(layout: Layout, address: str, index: str) -> str:
    """Store the state with words %s… and hash %hash at a slot; `index` is its number."""
    if holds_states(layout):
        return f"  %slot = xor i64 %s0, {signed(layout.unused or 0)}\n  store i64 %slot, ptr {address}"
    return f"  %next = add i64 {index}, 1\n  %slot = or i64 %hash, %next\n  store i64 %slot, ptr {address}"


def _splat(name: str, value: str, count: int) -> str:
    """%name: `count` times `value`."""
    return (
        f"  %{name}.one = insertelement <{count} x i64> poison, i64 {value}, i64 0\n"
        f"  %{name} = shufflevector <{count} x i64> %{name}.one, <{count} x i64> poison,"
        f" <{count} x i32> zeroinitializer"
    )


NEXT_BUCKET = """
full:
  %bn0 = add i64 %b, 1
  %over = icmp eq i64 %bn0, %buckets
  %bn = select i1 %over, i64 0, i64 %bn0
  br label %probe"""


def find_state(layout: Layout) -> str:
    """Look for the state %s0 from bucket %kept on, in a table of whole states; ends in the block `enter`.

    There %slotp is its slot, or an empty one where it is new (%isnew). No branch depends on whether it is
    new, which nothing predicts.
    """
    return f"""  %key = xor i64 %s0, {signed(layout.unused or 0)}
{_splat("same", "%key", 4)}
  br label %probe
probe:
  %b = phi i64 [%kept, %looking], [%bn, %full]
  %place = mul i64 %b, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
  %bp1 = getelementptr i8, ptr %bp, i64 {BUCKET_BYTES // 2}
  %v0 = load <4 x i64>, ptr %bp, align 32
  %v1 = load <4 x i64>, ptr %bp1, align 32
  %match0 = icmp eq <4 x i64> %v0, %same
  %match1 = icmp eq <4 x i64> %v1, %same
  %empty0 = icmp eq <4 x i64> %v0, zeroinitializer
  %empty1 = icmp eq <4 x i64> %v1, zeroinitializer
  %either0 = or <4 x i1> %match0, %empty0
  %either1 = or <4 x i1> %match1, %empty1
  %bits0 = bitcast <4 x i1> %either0 to i4
  %bits1 = bitcast <4 x i1> %either1 to i4
  %low = zext i4 %bits0 to i32
  %high = zext i4 %bits1 to i32
  %shifted = shl i32 %high, 4
  %m = or i32 %low, %shifted
  %isfull = icmp eq i32 %m, 0
  br i1 %isfull, label %full, label %enter
{NEXT_BUCKET}
enter:
  %match = or <4 x i1> %match0, %match1
  %hits = bitcast <4 x i1> %match to i4
  %isnew = icmp eq i4 %hits, 0
  %lane32 = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %lane = zext i32 %lane32 to i64
  %slotp = getelementptr i64, ptr %bp, i64 %lane"""


def _match_hash(name: str, pointer: str, hashed: str) -> str:
    """%name.m: which slots of the bucket at `pointer` have the 32 bits of `hashed`; %name.v the slots."""
    return f"""  %{name}.short = lshr i64 {hashed}, 32
{_splat(f"{name}.same", f"%{name}.short", 8)}
  %{name}.v = load <8 x i64>, ptr {pointer}, align 64
  %{name}.high = lshr <8 x i64> %{name}.v, {_EIGHT_32}
  %{name}.match = icmp eq <8 x i64> %{name}.high, %{name}.same
  %{name}.bits = bitcast <8 x i1> %{name}.match to i8
  %{name}.m = zext i8 %{name}.bits to i32"""


_EIGHT_32 = "<" + ", ".join(["i64 32"] * 8) + ">"


def fetch_candidate(layout: Layout, keep: int) -> str:
    """For a table of indices: the first state in %phash's bucket with the same 32 bits, fetched; or 0.

    Its index plus one is stored at number `keep` of the entry %p.
    """
    return f"""  %pb = call i64 @home(i64 %phash, i64 %buckets)
  %pplace = mul i64 %pb, {BUCKET_BYTES}
  %pbp = getelementptr i8, ptr %table, i64 %pplace
{_match_hash("peek", "%pbp", "%phash")}
  %pnone = icmp eq i32 %peek.m, 0
  %plane32 = call i32 @llvm.cttz.i32(i32 %peek.m, i1 false)
  %plane33 = and i32 %plane32, 7
  %plane = zext i32 %plane33 to i64
  %pslotp = getelementptr i64, ptr %pbp, i64 %plane
  %pslot = load i64, ptr %pslotp
  %plow = and i64 %pslot, {LOW_HALF}
  %pfound = select i1 %pnone, i64 0, i64 %plow
  %pkeep = getelementptr i64, ptr %p, i64 {keep}
  store i64 %pfound, ptr %pkeep
  %pindex = select i1 %pnone, i64 1, i64 %plow
  %pat0 = sub i64 %pindex, 1
  %pat = mul i64 %pat0, {layout.words}
  %psp = getelementptr i64, ptr %states, i64 %pat
  call void @llvm.prefetch.p0(ptr %psp, i32 0, i32 3, i32 1)"""


def _same_words(layout: Layout, name: str, low: str) -> str:
    """%name.same: whether the state whose index plus one is `low` has the words %s0, %s1 and so on."""
    lines = [
        f"  %{name}.index = sub i64 {low}, 1",
        f"  %{name}.at = mul i64 %{name}.index, {layout.words}",
        f"  %{name}.sp = getelementptr i64, ptr %states, i64 %{name}.at",
        load_words(layout, f"{name}.k", f"%{name}.sp"),
        f"  %{name}.d0 = xor i64 %s0, %{name}.k0",
    ]
    for i in range(1, layout.words):
        lines.append(f"  %{name}.x{i} = xor i64 %s{i}, %{name}.k{i}")
        lines.append(f"  %{name}.d{i} = or i64 %{name}.d{i - 1}, %{name}.x{i}")
    lines.append(f"  %{name}.same = icmp eq i64 %{name}.d{layout.words - 1}, 0")
    return "\n".join(lines)


def find_index(layout: Layout) -> str:
    """Look for the state %s… with hash %kept and candidate %found in a table of indices.

    Ends in the block `known`, or in `enter` with an empty slot %slotp.
    """
    return f"""  %hash = add i64 %kept, 0
  %nocandidate = icmp eq i64 %found, 0
  br i1 %nocandidate, label %search, label %quick
quick:
{_same_words(layout, "quick", "%found")}
  br i1 %quick.same, label %known, label %search
search:
  %home = call i64 @home(i64 %hash, i64 %buckets)
  br label %probe
probe:
  %b = phi i64 [%home, %search], [%bn, %full]
  %place = mul i64 %b, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
{_match_hash("look", "%bp", "%hash")}
  %nomatch = icmp eq i32 %look.m, 0
  br i1 %nomatch, label %miss, label %compare
compare:
  %cm = phi i32 [%look.m, %probe], [%cmrest, %other]
  %clane32 = call i32 @llvm.cttz.i32(i32 %cm, i1 true)
  %clane = zext i32 %clane32 to i64
  %cslotp = getelementptr i64, ptr %bp, i64 %clane
  %cslot = load i64, ptr %cslotp
  %clow = and i64 %cslot, {LOW_HALF}
{_same_words(layout, "full", "%clow")}
  br i1 %full.same, label %known, label %other
other:
  %cmless = sub i32 %cm, 1
  %cmrest = and i32 %cm, %cmless
  %cnone = icmp eq i32 %cmrest, 0
  br i1 %cnone, label %miss, label %compare
miss:
  %empty = icmp eq <8 x i64> %look.v, zeroinitializer
  %bits = bitcast <8 x i1> %empty to i8
  %isfull = icmp eq i8 %bits, 0
  br i1 %isfull, label %full, label %enter
{NEXT_BUCKET}
known:
  br label %on
enter:
  %m = zext i8 %bits to i32
  %lane32 = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %lane = zext i32 %lane32 to i64
  %slotp = getelementptr i64, ptr %bp, i64 %lane"""


def enter_function(layout: Layout, pointers: str) -> str:
    """`@enter(job, first, last)`: enter the states of these numbers, which are not in the table.

    `pointers` is IR that loads %states, %table and %buckets from the job.
    """
    return f"""
define void @enter(ptr %job, i64 %first, i64 %last) nounwind {{
entry:
{pointers}
  br label %each
each:
  %i = phi i64 [%first, %entry], [%i1, %put]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %look, label %exit
look:
  %i1 = add i64 %i, 1
  %at = mul i64 %i, {layout.words}
  %sp = getelementptr i64, ptr %states, i64 %at
{load_words(layout, "s", "%sp")}
  %hash = call i64 @hash({words_of(layout, "%s")})
  %home = call i64 @home(i64 %hash, i64 %buckets)
  br label %probe
probe:
  %b = phi i64 [%home, %look], [%bn, %full]
  %place = mul i64 %b, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
  %v = load <8 x i64>, ptr %bp, align 64
  %empty = icmp eq <8 x i64> %v, zeroinitializer
  %bits = bitcast <8 x i1> %empty to i8
  %isfull = icmp eq i8 %bits, 0
  br i1 %isfull, label %full, label %put
{NEXT_BUCKET}
put:
  %m = zext i8 %bits to i32
  %lane32 = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %lane = zext i32 %lane32 to i64
  %slotp = getelementptr i64, ptr %bp, i64 %lane
{store_slot(layout, "%slotp", "%i")}
  br label %each
exit:
  ret void
}}
"""


def rehash_function(layout: Layout, pointers: str) -> str:
    """`@rehash(job, oldbuckets, fills, late, room)`: spread a table over its memory, which has been enlarged.

    From the back to the front each old bucket is taken out and its slots put where they belong. That is never
    further to the front, but for slots that had overflowed into their bucket or overflow beyond the end: they
    wait in `late`, which has `room` for so many. `fills` is a zeroed byte for each new bucket, which counts
    its slots in use. The result is how many waited, or -1 when there was no room: then the table is to be
    cleared and all states entered again.
    """
    if holds_states(layout):
        hashed = [
            f"%plain = xor i64 %slot, {signed(layout.unused or 0)}",
            "%hash = call i64 @hash(i64 %plain)",
        ]
    else:
        hashed = [f"%hash = and i64 %slot, {-(1 << 32)}"]
    home = "\n".join(f"  {line}" for line in [*hashed, "%home = call i64 @home(i64 %hash, i64 %buckets)"])
    again = home.replace("%", "%l.").replace("@l.", "@").replace("%l.buckets", "%buckets")
    return f"""
define i64 @rehash(ptr %job, i64 %oldbuckets, ptr %fills, ptr %late, i64 %room) nounwind {{
entry:
  %lanes = alloca [8 x i64], align 64
  %scratch = alloca i64
{pointers}
  br label %each
each:
  %b = phi i64 [%oldbuckets, %entry], [%b1, %taken]
  %waiting = phi i64 [0, %entry], [%waits, %taken]
  %done = icmp eq i64 %b, 0
  br i1 %done, label %lates, label %take
take:
  %b1 = sub i64 %b, 1
  %place = mul i64 %b1, {BUCKET_BYTES}
  %bp = getelementptr i8, ptr %table, i64 %place
  %v = load <8 x i64>, ptr %bp, align 64
  store <8 x i64> %v, ptr %lanes, align 64
  store <8 x i64> zeroinitializer, ptr %bp, align 64
  br label %lane
lane:
  %i = phi i64 [0, %take], [%i1, %on]
  %waits = phi i64 [%waiting, %take], [%waits1, %on]
  %more = icmp ult i64 %i, {BUCKET_SLOTS}
  br i1 %more, label %look, label %taken
look:
  %i1 = add i64 %i, 1
  %lanep = getelementptr i64, ptr %lanes, i64 %i
  %slot = load i64, ptr %lanep
  %none = icmp eq i64 %slot, 0
{home}
  %start = select i1 %none, i64 %b1, i64 %home
  %early = icmp ult i64 %start, %b1
  br i1 %early, label %wait, label %probe
probe:
  %to = phi i64 [%start, %look], [%next, %full]
  %fillp = getelementptr i8, ptr %fills, i64 %to
  %fill = load i8, ptr %fillp
  %free = icmp ult i8 %fill, {BUCKET_SLOTS}
  %fine = or i1 %free, %none
  br i1 %fine, label %put, label %full
full:
  %next = add i64 %to, 1
  %over = icmp eq i64 %next, %buckets
  br i1 %over, label %wait, label %probe
put:
  %target0 = mul i64 %to, {BUCKET_SLOTS}
  %fill64 = zext i8 %fill to i64
  %target1 = add i64 %target0, %fill64
  %slotp = getelementptr i64, ptr %table, i64 %target1
  %target = select i1 %none, ptr %scratch, ptr %slotp
  store i64 %slot, ptr %target
  %one = select i1 %none, i8 0, i8 1
  %filled = add i8 %fill, %one
  store i8 %filled, ptr %fillp
  br label %on
wait:
  %roomy = icmp ult i64 %waits, %room
  br i1 %roomy, label %waited, label %failed
waited:
  %waitp = getelementptr i64, ptr %late, i64 %waits
  store i64 %slot, ptr %waitp
  %waitsmore = add i64 %waits, 1
  br label %on
on:
  %waits1 = phi i64 [%waits, %put], [%waitsmore, %waited]
  br label %lane
taken:
  br label %each
lates:
  %l = phi i64 [0, %each], [%l1, %l.put]
  %lmore = icmp ult i64 %l, %waiting
  br i1 %lmore, label %l.look, label %exit
l.look:
  %l1 = add i64 %l, 1
  %lp = getelementptr i64, ptr %late, i64 %l
  %l.slot = load i64, ptr %lp
{again}
  br label %l.probe
l.probe:
  %l.to = phi i64 [%l.home, %l.look], [%l.next, %l.full]
  %l.fillp = getelementptr i8, ptr %fills, i64 %l.to
  %l.fill = load i8, ptr %l.fillp
  %l.free = icmp ult i8 %l.fill, {BUCKET_SLOTS}
  br i1 %l.free, label %l.put, label %l.full
l.full:
  %l.next0 = add i64 %l.to, 1
  %l.over = icmp eq i64 %l.next0, %buckets
  %l.next = select i1 %l.over, i64 0, i64 %l.next0
  br label %l.probe
l.put:
  %l.target0 = mul i64 %l.to, {BUCKET_SLOTS}
  %l.fill64 = zext i8 %l.fill to i64
  %l.target1 = add i64 %l.target0, %l.fill64
  %l.slotp = getelementptr i64, ptr %table, i64 %l.target1
  store i64 %l.slot, ptr %l.slotp
  %l.filled = add i8 %l.fill, 1
  store i8 %l.filled, ptr %l.fillp
  br label %lates
exit:
  ret i64 %waiting
failed:
  ret i64 -1
}}
"""
