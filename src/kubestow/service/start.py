"""Where the program begins: the command line, or the completion of a word for a shell.

A shell asks for completions with each press of TAB. So nothing is imported here that only commands
need.
"""

import gc
import os
import sys
from typing import Final

# Set by the scripts that `--install-completion` writes, to complete_bash and the like.
COMPLETE_VARIABLE: Final = "_KUBESTOW_COMPLETE"


def main() -> None:
    """Complete a word if a shell asks for it, else run the command line."""
    instruction, _, shell = os.environ.get(COMPLETE_VARIABLE, "").partition("_")
    if instruction == "complete":
        from kubestow.service.completion.shells import complete_for_shell

        sys.exit(complete_for_shell(shell, os.environ))
    from kubestow.service.cli import main as run_command_line

    try:
        run_command_line()
    finally:
        # The memory is returned with the process: looking for garbage in it, as Python does at its
        # end, takes as long as the work of a small command.
        gc.freeze()


def complete_for_kubectl() -> None:
    """`kubectl_complete-kubestow`, which kubectl runs to complete `kubectl kubestow …`."""
    from kubestow.service.completion.shells import complete_for_cobra

    complete_for_cobra(sys.argv[1:])
