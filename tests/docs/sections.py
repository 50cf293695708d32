"""The pages of the protocol's sections, `docs/protocol`: what on them is made from the models.

A page is text, with regions for tables and diagrams. Which actions a page has is said here; which claims, the
claims say themselves. What is on a page that the models say otherwise, a test finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fencepost.checker import diagrams
from fencepost.checker.explore import check
from fencepost.checker.subject import BUILT_IN, BuiltIn, Subject
from fencepost.checker.traces import Trace
from fencepost.cli.catalogue import refusal_codes
from fencepost.model import Scope
from fencepost.model.protocol import Action
from fencepost.properties import Claim, Claims, Kind

from .generated import table
from .statuses import Drawn

GATE_2 = ("stale-lease-version", "not-the-owner", "finished", "lease-expired", "stale-state-version")
"""The refusals of every commit, which a table does not repeat."""


@dataclass(frozen=True, slots=True)
class Section:
    """One page: its file, the sections it is about, its actions by protocol, and its diagrams by region."""

    file: str
    numbers: tuple[str, ...]
    actions: Mapping[str, str]
    diagrams: Mapping[str, Callable[[], str]]

    def regions(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """The regions of the page, each with what makes it."""
        yield from self.diagrams.items()
        if self.actions:
            yield "actions", lambda: actions_table(self)
        if any(True for _ in self.claims()):
            yield "claims", lambda: claims_table(self)

    def claims(self) -> Iterator[tuple[BuiltIn, Claim]]:
        """The promises that are about these sections."""
        for b in BUILT_IN.values():
            yield from ((b, c) for c in b.claims.promises() if c.section in self.numbers)


# -- tables


def actions_table(section: Section) -> str:
    """The actions of a section; what several protocols have alike is one row."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, words in section.actions.items():
        for word in words.split():
            action = BUILT_IN[name].protocol.actions[word]
            row = (f"`{action.name}`", action.actor, action.doc, _refusals(action))
            found.setdefault(row, []).append(name)
    heading = ("action", "of the model", "who", "what happens", "refused, in this order")
    return table(heading, ((row[0], ", ".join(models), *row[1:]) for row, models in found.items()))


def _refusals(action: Action) -> str:
    codes = refusal_codes(action)
    if tuple(codes[: len(GATE_2)]) == GATE_2 and action.name not in ("commit", "decide_commit"):
        return ", ".join(["as [a commit](commits.md)", *(f"`{c}`" for c in codes[len(GATE_2) :])])
    return ", ".join(f"`{c}`" for c in codes) or "-"


def claims_table(section: Section) -> str:
    """The claims of a section, how each is known, and the shortest run of a changed model that breaks it."""
    return table(
        ("id", "claim", "of the model", "what it says", "known", "a variant that breaks it"),
        (
            (
                c.id,
                f"`{c.name}`",
                f"[{b.name}](../claims.md#claims-of-{b.name})",
                c.sentence,
                known(c),
                breaks(b, c),
            )
            for b, c in section.claims()
        ),
    )


def known(claim: Claim) -> str:
    """The verdict on a claim for all sizes. That each is proved is a test of its own, with all proofs."""
    return " ".join(
        ["PROVED", *(["with", ", ".join(f"`{s}`" for s in claim.needs_off), "off"] * bool(claim.needs_off))]
    )


def breaks(b: BuiltIn, claim: Claim) -> str:
    """The variant that breaks a claim soonest, and in how many steps."""
    found = [(v.breaks[claim.name], v.name) for v in b.variants.values() if claim.name in v.breaks]
    if found:
        steps, name = min(found)
        return f"`{name}` ({steps})"
    return f"none can: {claim.by_shape}" if claim.by_shape else "only changes of a sweep"


def switches_table() -> str:
    """What can go wrong, by name, with the models that have it and the claims that say nothing against it."""
    found: dict[str, list[BuiltIn]] = {}
    for b in BUILT_IN.values():
        for name in b.protocol.switches:
            found.setdefault(name, []).append(b)
    rows = [
        (f"`{name}`", _meaning(name, having), ", ".join(b.name for b in having), _needing(name, having))
        for name, having in found.items()
    ]
    return table(("switch", "what it is", "in the models", "needed off by"), rows)


def _meaning(name: str, having: Iterable[BuiltIn]) -> str:
    return "; or: ".join(dict.fromkeys(b.protocol.switches[name] for b in having))


def _needing(name: str, having: Iterable[BuiltIn]) -> str:
    said = []
    for b in having:
        ids = dict.fromkeys(c.id for c in b.claims.promises() if name in c.needs_off)
        said += [f"{', '.join(ids)} of {b.name}"] if ids else []
    return "; ".join(said) or "-"


# -- runs


def witnessed(model: str, witness: str, scope: Scope) -> Trace:
    """A shortest run to a witness: the one that breaks the claim that there is none."""
    found = BUILT_IN[model].claims.claims[witness]
    never = Claims(model)
    never.claims["never"] = Claim("never", "never", _kind(found), _denied(found), "It is never reached.")
    (finding,) = check(Subject(BUILT_IN[model].protocol, never), scope=scope).findings
    assert finding.trace is not None, f"{witness} of {model} is not reached in {scope.name}"
    return finding.trace


def _kind(witness: Claim) -> Kind:
    return Kind.EACH_STEP if witness.over_steps else Kind.ALWAYS


def _denied(witness: Claim) -> Callable[..., object]:
    reached = witness.predicate
    if not witness.over_steps:
        return lambda s: not reached(s)
    if reached.__code__.co_argcount == len(("before", "after")):
        return lambda before, after: not reached(before, after)
    return lambda before, after, step: not reached(before, after, step)


def run_to(model: str, witness: str, scope: str, about: str, *off: str, **bounds: int) -> Callable[[], str]:
    """What draws a shortest run to a witness, in a scope with other sizes and bounds; `about` is noted."""

    def drawn() -> str:
        protocol = BUILT_IN[model].protocol
        assert set(about.split()) <= set(protocol.variables), f"{model} has not all of {about}"
        base = protocol.scopes[scope]
        made = base.but(
            sizes={**base.sizes, **{k: v for k, v in bounds.items() if k in base.sizes}},
            bounds={**base.bounds, **{k: v for k, v in bounds.items() if k in base.bounds}},
            switches=base.switches - set(off),
        )
        trace = witnessed(model, witness, made)
        sentence = BUILT_IN[model].claims.claims[witness].sentence
        picture = diagrams.mermaid(trace, protocol, about=about.split())
        return f"*{sentence}*\n\n```mermaid\n{picture}```\n"

    return drawn


def states_of(model: str, variable: str, only: str = "", **names: str) -> Callable[[], str]:
    """What draws the values of a variable and what leads from one to another."""
    return lambda: Drawn(BUILT_IN[model].protocol, variable, only.split(), names).mermaid()


def moves_of(model: str, variable: str) -> Callable[[], str]:
    """The same as a table."""
    return lambda: Drawn(BUILT_IN[model].protocol, variable).table()


SECTIONS = (
    Section(
        "who-and-answers",
        ("§1", "§2"),
        {},
        {"diagram": run_to("core", "acquiring_a_live_lease_is_refused", "quick", "owner live lease_version")},
    ),
    Section(
        "leases",
        ("§3",),
        {
            "core": "acquire renew release reread expire",
            "effects": "acquire reread expire",
            "workflow": "acquire reread expire",
            "recovery": "expire",
            "clocks": "tick ask acquire receive start_effect commit take_effect",
        },
        {"diagram": states_of("core", "live", no="over", yes="live")},
    ),
    Section(
        "commits",
        ("§4",),
        {
            "core": "send_commit decide_commit receive_answer ask",
            "workflow": "ask_to_cancel hand_in record_request merge",
        },
        {
            "diagram": run_to(
                "core", "a_logged_commit_arrives_again", "quick", "log state_version lease_version"
            ),
            "requests": states_of("workflow", "stands"),
        },
    ),
    Section(
        "steps",
        ("§5",),
        {"workflow": "depend begin start succeed fail hand_over decide_by_hand run_by_hand finish"},
        {"diagram": states_of("workflow", "status"), "table": moves_of("workflow", "status")},
    ),
    Section(
        "effects",
        ("§6",),
        {
            "effects": "commit send_effect receive_reply query",
            "workflow": "intend_anew send_effect receive_reply query",
        },
        {
            "diagram": run_to(
                "effects",
                "a_request_is_answered_from_the_record",
                "quick-keyed",
                "record happened log receipt lease_version",
            )
        },
    ),
    Section(
        "downstreams",
        ("§7",),
        {"effects": "decide_call raise_fence send_tombstone", "workflow": "decide_call send_tombstone"},
        {
            "diagram": run_to(
                "effects",
                "a_stale_effect_is_refused",
                "quick-queryable",
                "fence happened lease_version",
            )
        },
    ),
    Section(
        "recovery",
        ("§8",),
        {"recovery": "check acquire reread take_up begin release commit give"},
        {
            "diagram": states_of(
                "recovery",
                "phase",
                "check acquire take_up begin release commit crash",
            ),
            "run": run_to(
                "recovery",
                "a_checkpoint_of_a_former_owner_is_resumed",
                "quick",
                "checkpoint view lease_version state_version",
                state_version=2,
            ),
        },
    ),
    Section(
        "retries",
        ("§9",),
        {"workflow": "schedule_retry reach_timer run_again"},
        {"diagram": states_of("workflow", "status", "schedule_retry run_again succeed fail hand_over")},
    ),
    Section(
        "cancelling",
        ("§10",),
        {"workflow": "ask_to_cancel acknowledge_cancel give_up call_off"},
        {
            "diagram": states_of("workflow", "cause"),
            "steps": states_of("workflow", "status", "call_off take_no succeed fail hand_over compensate"),
        },
    ),
    Section(
        "approvals",
        ("§11",),
        {"workflow": "gate ask_approval decide_approval reach_deadline run_approved take_no give_up_waiting"},
        {
            "diagram": states_of(
                "workflow",
                "status",
                "ask_approval intend_anew run_approved take_no give_up_waiting",
            ),
            "run": run_to(
                "workflow",
                "a_late_approval_is_honoured",
                "approved",
                "status late stands fingerprint approves state_version",
                worker=1,
                fingerprint=1,
            ),
        },
    ),
    Section(
        "compensation",
        ("§12",),
        {"workflow": "have_no_compensation compensate end_compensation hand_over_compensation attest"},
        {
            "diagram": states_of(
                "workflow",
                "status",
                "compensate end_compensation hand_over_compensation attest",
            )
        },
    ),
    Section(
        "triggers",
        ("§13",),
        {
            "triggers": "send_trigger decide_trigger receive_answer acquire finish change_target "
            "intend_notice send_notice decide_notice record_notice"
        },
        {
            "diagram": run_to(
                "triggers",
                "a_trigger_comes_again",
                "quick-arrivals",
                "row record told",
                event=1,
                instance=2,
                fingerprint=1,
            ),
            "notice": run_to(
                "triggers",
                "a_notice_is_sent_again_after_a_crash",
                "quick-notices",
                "received kept intended settled",
                target_version=0,
            ),
        },
    ),
    Section(
        "definitions",
        ("§14",),
        {
            "recovery": "deploy register_migration change_content change_versions change_header "
            "lose_checkpoint replay_earlier replay_refused misplace"
        },
        {
            "diagram": run_to(
                "recovery",
                "an_instance_is_handed_to_a_person",
                "quick-definitions",
                "code phase log lease_version state_version",
            )
        },
    ),
    Section(
        "replay",
        ("§15",),
        {"replay": "begin make_command serve meet_unfinished record_at_once record_start perform settle"},
        {"diagram": states_of("replay", "standing")},
    ),
    Section(
        "world",
        ("§16",),
        {
            "core": "crash restart pause resume lose_commit lose_answer",
            "effects": "crash restart pause resume lose_request lose_reply move_revision expire_record "
            "restart_downstream",
            "workflow": "crash restart pause resume lose_call lose_reply lose_request expire_record "
            "restart_downstream",
            "triggers": "crash crash_source lose_trigger lose_answer lose_notice lose_reply "
            "expire_trigger expire_notice restart_store restart_recipient",
            "recovery": "crash restart pause resume",
            "replay": "crash restart deploy",
            "clocks": "run_ahead run_ahead_alone step_back cut_off reconnect use_up",
        },
        {"switches": switches_table},
    ),
)
"""The pages, in the order of the protocol."""
