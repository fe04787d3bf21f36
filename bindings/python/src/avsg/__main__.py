"""The program avsg, which the wheel carries: `avsg`, or `python -m avsg`."""

import os
import sys


def main() -> None:
    """Becomes the program, with the arguments of this process."""
    program = os.path.join(os.path.dirname(__file__), "program")
    try:
        os.execv(program, ["avsg", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{error}; install avsg with pip, which brings the program")


if __name__ == "__main__":
    main()
