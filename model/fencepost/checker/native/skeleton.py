"""The search loop in LLVM IR: expand states in blocks, look successors up in the table, append the new ones.

The functions: `expand(job, first, last)` expands states from index `first` up to `last` and returns the index
where it stopped, which is before `last` when table or arrays have to grow; `first(job)` evaluates the claims
over state 0; those about the table alone are in `table`.

Successors of a block lie in a buffer of *entries*: the words of the state, its parent, its bucket (or its
hash, where the table holds indices) and in that case the index of a candidate.
"""

from __future__ import annotations

from fencepost.checker.native.codegen import entry_words
from fencepost.checker.native.job import JobLayout
from fencepost.checker.native.layout import Layout
from fencepost.checker.native.table import (
    DECLARATIONS,
    HOME,
    enter_function,
    fetch_candidate,
    fetch_function,
    find_index,
    find_state,
    hash_function,
    holds_states,
    load_words,
    rehash_function,
    store_slot,
    words_of,
)

BLOCK_STATES = 16
"""States whose successors are computed before the first is looked up: memory is fetched meanwhile."""

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


def skeleton(layout: Layout, job: JobLayout, *, steps: int, fetch: bool, most: int) -> str:
    """The text of all functions but those of `codegen`.

    `fetch`: the step functions do not fetch buckets themselves. `most` successors can come from one state.
    """
    table = (
        _load("states", job.STATES, "ptr")
        + _load("table", job.TABLE, "ptr")
        + _load("buckets", job.BUCKETS, "i64")
    )
    parts = [
        hash_function(layout),
        HOME,
        fetch_function(layout),
        _RECORD.format(found=job.found),
        _STUCK.format(blocked=job.BLOCKED, dead=job.DEAD, boundary=job.BOUNDARY),
        _check_first(layout),
        enter_function(layout, table),
        rehash_function(layout, table),
        _expand(layout, job, steps=steps, fetch=fetch, most=most),
        DECLARATIONS,
    ]
    return "\n".join(parts)


def _load(name: str, place: int, kind: str) -> str:
    return f"""
  %{name}.p = getelementptr i64, ptr %job, i64 {place}
  %{name} = load {kind}, ptr %{name}.p"""


def _check_first(layout: Layout) -> str:
    """`@first(job)`: evaluate the claims over state 0, as if every bit had changed."""
    others = "\n".join(f"  %o{i} = xor i64 %s{i}, -1" for i in range(layout.words))
    return f"""
define void @first(ptr %job) nounwind {{
entry:{_load("states", JobLayout.STATES, "ptr")}
{load_words(layout, "s", "%states")}
{others}
  call void @check({words_of(layout, "%s")}, {words_of(layout, "%o")}, ptr %job, i64 0)
  ret void
}}
"""


def _steps(layout: Layout, steps: int) -> tuple[str, str]:
    """The calls that write all successors of a state to the buffer, and the name of its end after them."""
    calls, out = [], "%out"
    for i in range(steps):
        arguments = f"{words_of(layout, '%w')}, ptr {out}, ptr %job, ptr %table, i64 %buckets, i64 %state"
        calls.append(f"  %out{i} = call ptr @step{i}({arguments})")
        out = f"%out{i}"
    return "\n".join(calls), out


def _expand(layout: Layout, job: JobLayout, *, steps: int, fetch: bool, most: int) -> str:
    count = layout.words
    calls, end = _steps(layout, steps)
    return f"""
define i64 @expand(ptr noalias %job, i64 %first, i64 %last) nounwind {{
entry:
  %scratch = alloca i64
{_load("states", job.STATES, "ptr")}{_load("parents", job.PARENTS, "ptr")}{_load("table", job.TABLE, "ptr")}
{_load("buckets", job.BUCKETS, "i64")}{_load("limit", job.LIMIT, "i64")}{_load("buffer", job.BUFFER, "ptr")}
{_load("count0", job.COUNT, "i64")}
  br label %block
block:
  %i = phi i64 [%first, %entry], [%inext, %blockend]
  %count = phi i64 [%count0, %entry], [%cnt, %blockend]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %roomy, label %exit
roomy:
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
  %out = phi ptr [%buffer, %start], [{end}, %genend]
  %wordat = mul i64 %state, {count}
  %sp = getelementptr i64, ptr %states, i64 %wordat
{load_words(layout, "w", "%sp")}
{_load("blocked", job.BLOCKED, "i64")}
{calls}
  %isstuck = icmp eq ptr %out, {end}
  br i1 %isstuck, label %stuck, label %genend
stuck:
  call void @stuck(ptr %job, i64 %state, i64 %blocked)
  br label %genend
genend:
  %state1 = add i64 %state, 1
  %genmore = icmp ult i64 %state1, %inext
  br i1 %genmore, label %gen, label %fetch
fetch:
{_fetches(layout, end) if fetch else "  br label %fetched"}
fetched:
  br label %{"looks" if holds_states(layout) else "peek"}
{"" if holds_states(layout) else _peek(layout, end)}
looks:
  br label %look
{_look(layout, end)}
looked:
  br label %check
{_checks(layout)}
blockend:
  br label %block
exit:
{_load("counted", job.COUNT, "i64")}
  store i64 %count, ptr %counted.p
  ret i64 %i
}}
"""


def _fetches(layout: Layout, end: str) -> str:
    """Fetch the bucket of every entry, where the step functions have not done so."""
    return f"""  br label %fetchnext
fetchnext:
  %f = phi ptr [%buffer, %fetch], [%fnext, %fetching]
  %fetchmore = icmp ult ptr %f, {end}
  br i1 %fetchmore, label %fetching, label %fetched
fetching:
  %fnext = getelementptr i8, ptr %f, i64 {8 * entry_words(layout)}
{load_words(layout, "f", "%f")}
  %fkept = call i64 @fetch({words_of(layout, "%f")}, ptr %table, i64 %buckets)
  %fkeep = getelementptr i64, ptr %f, i64 {layout.words + 1}
  store i64 %fkept, ptr %fkeep
  br label %fetchnext"""


def _peek(layout: Layout, end: str) -> str:
    """Fetch the states that the slots with the same hash speak of."""
    return f"""
peek:
  %p = phi ptr [%buffer, %fetched], [%pnext, %peeking]
  %peekmore = icmp ult ptr %p, {end}
  br i1 %peekmore, label %peeking, label %looks
peeking:
  %pnext = getelementptr i8, ptr %p, i64 {8 * entry_words(layout)}
  %pkp = getelementptr i64, ptr %p, i64 {layout.words + 1}
  %phash = load i64, ptr %pkp
{fetch_candidate(layout, layout.words + 2)}
  br label %peek
"""


def _look(layout: Layout, end: str) -> str:
    """Look up every entry; append those that are new."""
    if holds_states(layout):
        more, find, after = "", find_state(layout), "enter"
        slot = "  %target = select i1 %isnew, ptr %slotp, ptr %scratch"
        counted = "  %one = zext i1 %isnew to i64\n  %cnt1 = add i64 %cnt, %one\n  br label %look"
    else:
        more = f"  %cp = getelementptr i64, ptr %e, i64 {layout.words + 2}\n  %found = load i64, ptr %cp"
        find, after = find_index(layout), "on"
        slot = "  %target = getelementptr i8, ptr %slotp, i64 0"
        counted = (
            "  %cntnew = add i64 %cnt, 1\n  br label %on\n"
            "on:\n  %cnt1 = phi i64 [%cnt, %known], [%cntnew, %enter]\n  br label %look"
        )
    stores = "\n".join(
        f"  %new{i}.p = getelementptr i64, ptr %newp, i64 {i}\n  store i64 %s{i}, ptr %new{i}.p"
        for i in range(layout.words)
    )
    return f"""
look:
  %e = phi ptr [%buffer, %looks], [%enext, %{after}]
  %cnt = phi i64 [%count, %looks], [%cnt1, %{after}]
  %lookmore = icmp ult ptr %e, {end}
  br i1 %lookmore, label %looking, label %looked
looking:
  %enext = getelementptr i8, ptr %e, i64 {8 * entry_words(layout)}
{load_words(layout, "s", "%e")}
  %kp = getelementptr i64, ptr %e, i64 {layout.words + 1}
  %kept = load i64, ptr %kp
{more}
{find}
{slot}
{store_slot(layout, "%target", "%cnt")}
  %newat = mul i64 %cnt, {layout.words}
  %newp = getelementptr i64, ptr %states, i64 %newat
{stores}
  %parentp = getelementptr i64, ptr %e, i64 {layout.words}
  %parent = load i64, ptr %parentp
  %parent32 = trunc i64 %parent to i32
  %pp = getelementptr i32, ptr %parents, i64 %cnt
  store i32 %parent32, ptr %pp
{counted}
"""


def _checks(layout: Layout) -> str:
    """Evaluate the claims over every state of the block that is new."""
    return f"""
check:
  %c = phi i64 [%count, %looked], [%cnext, %checking]
  %checkmore = icmp ult i64 %c, %cnt
  br i1 %checkmore, label %checking, label %blockend
checking:
  %cnext = add i64 %c, 1
  %cat = mul i64 %c, {layout.words}
  %csp = getelementptr i64, ptr %states, i64 %cat
{load_words(layout, "c", "%csp")}
  %cparentp = getelementptr i32, ptr %parents, i64 %c
  %cparent32 = load i32, ptr %cparentp
  %cparent = zext i32 %cparent32 to i64
  %cpat = mul i64 %cparent, {layout.words}
  %cpsp = getelementptr i64, ptr %states, i64 %cpat
{load_words(layout, "q", "%cpsp")}
  call void @check({words_of(layout, "%c")}, {words_of(layout, "%q")}, ptr %job, i64 %c)
  br label %check
"""
