"""Error messages for the command line: one line that says what is wrong and what to type."""

from __future__ import annotations

import re

import click

from dign.core.errors import ResumableError, UserError, find_nearest_name, quote_path, unknown_name


def explain(error: UserError, command: click.Command | None) -> str:
    """The library's message with options in place of parameters, and the command that resumes a run."""
    message = name_options(str(error), command)
    if isinstance(error, ResumableError):
        message += f" To resume: `dign train --resume {quote_path(error.path)}`."
    return message


def name_options(text: str, command: click.Command | None) -> str:
    """Replace parameters in backticks by the options of `command`: `lr` by --lr, `preset="fast"` by --preset fast."""
    flags = _collect_flags(command) if command else {}

    def name(match: re.Match[str]) -> str:
        flag, value = flags.get(match["name"]), match["value"]
        return match[0] if flag is None else f"{flag} {value}" if value else flag

    return re.sub(r"`(?P<name>\w+)(?:=\"?(?P<value>[^`\"]*)\"?)?`", name, text)


def _collect_flags(command: click.Command) -> dict[str, str]:
    """The options of a command, and of the commands in a group, by the names of their parameters."""
    flags = {
        param.name: next((name for name in param.opts if name.startswith("--")), param.opts[0])
        for param in command.params
        if isinstance(param, click.Option) and param.name is not None
    }
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        flags |= _collect_flags(inner)
    return flags


def describe_usage_error(error: click.ClickException) -> str:
    """One line for any of click's errors, with the nearest name where a name is wrong."""
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return error.format_message()
    unknown_command = re.match(r"No such command '(.*)'", error.message)
    if unknown_command and isinstance(ctx.command, click.Group):
        known = ctx.command.list_commands(ctx)
        kind = f"command of `{ctx.command_path}`" if ctx.parent else "command"
        return str(unknown_name(kind, unknown_command[1], known))
    if isinstance(error, click.NoSuchOption):
        message = f"`{ctx.command_path}` has no option {error.option_name}{_did_you_mean(error.option_name, ctx)}"
    elif isinstance(error, click.MissingParameter) and error.param:
        message = f"`{ctx.command_path}` needs {_name(error.param)}{_list_choices(error.param)}"
    elif isinstance(error, click.BadParameter) and error.param:
        message = _bad_value(error, error.param)
    else:
        message = " ".join(error.format_message().split())
    return f"{message.rstrip('.')}: see `{ctx.command_path} --help`."


def _bad_value(error: click.BadParameter, param: click.Parameter) -> str:
    """What the parameter takes, and what it was given, which only click's message contains."""
    name, wanted = _name(param), _describe_type(param.type)
    given = re.match(r"(['\"]?)(?P<value>.*?)\1 is not ", error.message, re.DOTALL)
    if not given or not wanted:
        return f"{name}: {' '.join(error.message.split())}"
    value = given["value"]
    hint = find_nearest_name(value, param.type.choices) if isinstance(param.type, click.Choice) else None
    return f"{name} takes {wanted}, not '{value}'" + (f" (did you mean '{hint}'?)" if hint else "")


def _describe_type(kind: click.ParamType) -> str | None:
    if isinstance(kind, click.Choice):
        return _join_choices(kind)
    noun = {"integer": "a whole number", "float": "a number"}.get(kind.name.removesuffix(" range"))
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if noun is None or low is high is None:
        return noun
    if high is None:
        return f"{noun} of at least {low}"
    return f"{noun} of at most {high}" if low is None else f"{noun} from {low} to {high}"


def _join_choices(kind: click.Choice) -> str:
    *most, last = map(str, kind.choices)
    return f"{', '.join(most)} or {last}" if most else last


def _list_choices(param: click.Parameter) -> str:
    return f" ({_join_choices(param.type)})" if isinstance(param.type, click.Choice) else ""


def _name(param: click.Parameter) -> str:
    """An option by its flag, an argument as its usage line calls it."""
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.metavar or str(param.name).upper()


def _did_you_mean(flag: str, ctx: click.Context) -> str:
    flags = [flag for param in ctx.command.get_params(ctx) for flag in (*param.opts, *param.secondary_opts)]
    near = find_nearest_name(flag.lstrip("-"), [flag.lstrip("-") for flag in flags if flag.startswith("--")])
    return f" (did you mean --{near}?)" if near else ""
