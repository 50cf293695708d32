"""The entry point: finds the command, runs it, and turns what goes wrong into one message and an exit code.

Nothing heavy is imported here: help is printed without loading the solver, the compiler or a model.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fencepost.cli.errors import EXIT_INTERNAL, EXIT_USAGE, explain_error
from fencepost.cli.output import OutputError, kept_open

EXIT_INTERRUPTED = 130

COMMANDS = {
    "check": "Look at every state of a scope: a verdict for each claim, a shortest run where it breaks.",
    "prove": "Prove claims for all sizes, by induction.",
    "simulate": "Try random runs of the model.",
    "sweep": "Take one thing away from the model at a time and see which claim notices.",
    "verify": "Run an implementation beside the model.",
    "evidence": "One table: each claim and how it is known.",
    "demo": "Kill workers of the reference, and show that nothing is lost or done twice.",
    "replay": "Replay a saved run that broke a claim.",
    "list": "List what there is: claims, actions, scopes, variants, refusals, switches.",
    "explain": "Explain a claim, refusal, variant, action, scope or switch.",
}
"""The commands in the order of help, each with its one line, which a test compares with the command's own."""

_MODULES = {"list": "listing"}

_EXIT_CODES = """
Exit codes: 0 all as required; 1 refuted, does not conform, or differs from --expect; 2 usage, or a mistake in
your file; 3 undetermined or not exercised; 4 internal error.
"""


class Commands(click.Group):
    """The group of all commands; a command's module is imported when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"fencepost.cli.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; a close name is offered for one that does not exist."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]!r}; {remedy}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=" ".join(_EXIT_CODES.split()),
)
@click.version_option(package_name="fencepost")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def cli() -> None:
    """A formally checked model of durable execution, and what implementations are held to.

    Start with `fencepost evidence`; then `fencepost explain S1`, and `fencepost check --with my_claims.py`.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code. Messages go to stderr, results to stdout.

    Whoever reads them, `head` perhaps, may stop at any time: see `fencepost.cli.output`.
    """
    with kept_open():
        try:
            code = _run(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
        except OutputError as error:
            with contextlib.suppress(OutputError):
                click.echo(f"fencepost: {error}; what was printed is not all of it", err=True)
            return EXIT_INTERNAL
    return code


def _run(arguments: Sequence[str]) -> int:
    if not arguments:
        click.echo(cli.get_help(click.Context(cli, info_name="fencepost")), err=True)
        return EXIT_USAGE
    debug = "--debug" in arguments
    try:
        _refuse_stray_package()
        code = cli.main(args=list(arguments), prog_name="fencepost", standalone_mode=False)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "fencepost"
        click.echo(f"{where}: {error.format_message()}", err=True)
        click.echo(f"See `{where} --help`.", err=True)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("fencepost: interrupted; nothing is claimed about what was not finished", err=True)
        return EXIT_INTERRUPTED
    except OutputError:
        raise
    except BaseException as error:  # noqa: BLE001  # where every error ends, a user's sys.exit(0) with them
        return explain_error(error, debug=debug)
    return int(code or 0)


def _refuse_stray_package() -> None:
    """UsageError when a file hides parts of fencepost, which is a namespace of several directories."""
    stray = Path("fencepost", "__init__.py")
    if stray.is_file():
        raise click.UsageError(
            f"{stray} in this directory would hide parts of fencepost, whose parts share a namespace; "
            "rename the directory or delete the file"
        )


def main() -> None:
    """What the `fencepost` script calls."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
