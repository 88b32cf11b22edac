"""Files of the site's own: folders that are made, a secret that is kept. Used by the settings."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def made_folder(path: Path, *, setting: str) -> Path:
    """The folder, which is made when it is missing. `setting` names it in the sentence of ImproperlyConfigured."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{setting}: there can't be a folder {path} ({error.strerror}). Name one that this account may write in."
        ) from None
    return path


def kept_secret(path: Path) -> str:
    """The secret in a file; the first process to come makes it, those that start beside it read the same.

    Raises ImproperlyConfigured when there can be no such file.
    """
    try:
        return _kept_secret(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The secret can't be kept in {path} ({error.strerror}). Name a file that this account may write by "
            "SECRET_KEY_FILE or DATA_DIR, or set SECRET_KEY."
        ) from None


def _kept_secret(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(48))
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
