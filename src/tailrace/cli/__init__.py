"""The command line. `main` turns every user's mistake into one line and exit status 2."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of ``tailrace``."""
    from ..errors import UserError
    from .app import app

    try:
        code = app(standalone_mode=False)
    except UserError as error:
        _say(str(error))
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        code = _usage(error)
    if code == 130:
        _say("interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> int:
    """Click's own errors are mistakes in the call; anything else is a fault of ours."""
    shown = getattr(error, "format_message", None)
    if shown is None:
        if type(error).__name__ == "Abort":
            return 130
        if type(error).__name__ == "Exit":
            return int(getattr(error, "exit_code", 0))
        raise error
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help())
        return 2
    where = f"{context.info_name}: " if context is not None and context.parent is not None else ""
    _say(f"{where}{shown()} (see --help)")
    return 2


def _say(text: str) -> None:
    print("tailrace: " + " ".join(text.split()), file=sys.stderr)
