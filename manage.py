#!/usr/bin/env python
"""Django's command line. What stops a start is said in one sentence."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except PermissionError as error:
        sys.exit(f"{error.filename}: {error.strerror}. Let this account write there, or set DATA_DIR and STATIC_ROOT.")


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        sys.exit(f"{error}: this Python lacks one of the site's packages. Remove .venv; `make run` makes it anew.")
