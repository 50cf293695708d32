"""Options that several commands share, and how they are read. A command takes only what it can honour."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

if TYPE_CHECKING:
    _FloatType = click.ParamType[float]
    _IntType = click.ParamType[int]
else:  # in older versions of click the type has no parameter
    _FloatType = _IntType = click.ParamType

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_MEBIBYTES = {"": 1, "M": 1, "G": 1024}


class Seconds(_FloatType):
    """A time: ``30``, ``30s``, ``2m`` or ``1h``, as seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a time."""
        if isinstance(value, (int, float)):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(value))
        if found is None or float(found[1]) <= 0:
            self.fail(f"{value!r} is no time above zero; write 30, 30s, 2m or 1h", param, ctx)
        return float(found[1]) * _SECONDS[found[2]]


class Mebibytes(_IntType):
    """An amount of memory: ``500``, ``500M`` or ``2G``, as MiB."""

    name = "MB"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read an amount of memory."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MG]?)(?:i?B)?", str(value), re.IGNORECASE)
        amount = float(found[1]) * _MEBIBYTES[found[2].upper()] if found is not None else 0
        if amount < 1:
            self.fail(f"{value!r} is no amount of memory of 1 MB or more; write 500, 500M or 2G", param, ctx)
        return int(amount)


def _all(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for one in reversed(decorators):
            command = one(command)
        return command

    return decorate


CLAIMS = click.argument("claims", nargs=-1, metavar="[CLAIM]...")

DEBUG = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def _only_one(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str:
    """The one value of an option; a second one is refused, where click would forget the first in silence."""
    if len(values) > 1:
        instead = "import one from the other" if param.name == "file" else "name one"
        raise click.BadParameter(f"given {len(values)} times: {', '.join(values)}; {instead}", ctx, param)
    return values[0] if values else ""


def _once(*names: str, metavar: str, what: str) -> Callable[[Any], Any]:
    return click.option(*names, metavar=metavar, multiple=True, callback=_only_one, help=what)


def with_file(what: str) -> Callable[[Any], Any]:
    """The option --with; `what` says in help what the file may hold."""
    return _once("--with", "file", metavar="FILE", what=what)


MODEL = _once("--model", metavar="NAME", what="Only this built-in protocol, such as core or effects.")

SUBJECT: Callable[[Any], Any] = _all(
    with_file("A Python file with claims of your own, a changed model, or both."),
    _once("--variant", metavar="NAME", what="A built-in variant; see `fencepost list variants`."),
    MODEL,
)

SCOPE: Callable[[Any], Any] = _all(
    click.option(
        "--scope",
        "scope_text",
        metavar="NAME[:SIZES]",
        default="",
        help="The scope, and sizes and bounds that are different: small:worker=3,lease_version=4.",
    ),
    click.option("--on", "on", metavar="SWITCH", multiple=True, help="A switch of the world to turn on."),
    click.option("--off", "off", metavar="SWITCH", multiple=True, help="A switch of the world to turn off."),
)

SEED = click.option("--seed", type=int, default=0, show_default=True, help="The seed of all random choices.")

MEMORY = click.option(
    "--memory", "memory_mb", type=Mebibytes(), help="At most this much memory for states: 500M, 2G."
)

STOP = click.option(
    "--stop",
    type=click.Choice(["all", "first"]),
    default="all",
    show_default=True,
    help="End with the first violation, or go on until each claim has its verdict.",
)

REQUIRE = click.option(
    "--require",
    type=click.Choice(["proved", "bounded"]),
    help="What a claim needs for exit code 0: to be proved, or at least to hold in a whole scope.",
)

EXPECT = click.option(
    "--expect",
    metavar="FILE",
    default="",
    help="A JSON or TOML file of verdicts by claim id, or what --json printed; differences: exit code 1.",
)


def budget(default_s: float | None, what: str) -> Callable[[Any], Any]:
    """The option --budget; `what` says in help what it bounds."""
    return click.option(
        "--budget",
        "budget_s",
        type=Seconds(),
        default=default_s,
        show_default=default_s is not None,
        help=f"{what}: 30, 30s, 2m. What is not known by then is UNDETERMINED.",
    )


def jobs(default: int | None, what: str) -> Callable[[Any], Any]:
    """The option --jobs; without a default there are as many as processors, two at most."""
    return click.option(
        "--jobs", type=click.IntRange(1), default=default, show_default=default is not None, help=what
    )
