"""What click finds wrong with a command line, said in one line as everything else is: what, and what to do."""

from __future__ import annotations

import re

import click

from dign.core.errors import find_nearest_name, unknown_name


def sentence_about(error: click.ClickException) -> str:
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
        said = f"`{ctx.command_path}` has no option {error.option_name}{_did_you_mean(error.option_name, ctx)}"
    elif isinstance(error, click.MissingParameter) and error.param:
        said = f"`{ctx.command_path}` needs {_called(error.param)}{_choices(error.param)}"
    elif isinstance(error, click.BadParameter) and error.param:
        said = _bad_value(error, error.param)
    else:
        said = " ".join(error.format_message().split())
    return f"{said.rstrip('.')}: see `{ctx.command_path} --help`."


def _bad_value(error: click.BadParameter, param: click.Parameter) -> str:
    """What the parameter takes, and what it was given, which click tells within its message alone."""
    name, wanted = _called(param), _wanted(param.type)
    given = re.match(r"(['\"]?)(?P<value>.*?)\1 is not ", error.message, re.DOTALL)
    if not given or not wanted:
        return f"{name}: {' '.join(error.message.split())}"
    value = given["value"]
    hint = find_nearest_name(value, param.type.choices) if isinstance(param.type, click.Choice) else None
    return f"{name} takes {wanted}, not '{value}'" + (f" (did you mean '{hint}'?)" if hint else "")


def _wanted(kind: click.ParamType) -> str | None:
    if isinstance(kind, click.Choice):
        return _one_of(kind)
    noun = {"integer": "a whole number", "float": "a number"}.get(kind.name.removesuffix(" range"))
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if noun is None or low is high is None:
        return noun
    if high is None:
        return f"{noun} of at least {low}"
    return f"{noun} of at most {high}" if low is None else f"{noun} from {low} to {high}"


def _one_of(kind: click.Choice) -> str:
    *most, last = map(str, kind.choices)
    return f"{', '.join(most)} or {last}" if most else last


def _choices(param: click.Parameter) -> str:
    return f" ({_one_of(param.type)})" if isinstance(param.type, click.Choice) else ""


def _called(param: click.Parameter) -> str:
    """An option by its flag, an argument as its usage line calls it."""
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.metavar or str(param.name).upper()


def _did_you_mean(flag: str, ctx: click.Context) -> str:
    flags = [flag for param in ctx.command.get_params(ctx) for flag in (*param.opts, *param.secondary_opts)]
    near = find_nearest_name(flag, [flag for flag in flags if flag.startswith("--")])
    return f" (did you mean {near}?)" if near else ""
