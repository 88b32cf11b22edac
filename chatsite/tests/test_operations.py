"""The settings in docs/OPERATIONS.md and in .env.example are those of the code, with the defaults of the code."""

from __future__ import annotations

import re

from chatsite.tests.test_connections import shown
from testing.services import PROJECT, site_variables

ROW = re.compile(r"^\| `([A-Z_]+)` \| (?:`(.*)`)? ?\| \S.* \|$", flags=re.MULTILINE)
EXAMPLE = re.compile(r"^# ([A-Z][A-Z0-9_]*)=(.*)$", flags=re.MULTILINE)
PLAIN = "str | int | float | bool | list"
MADE = {"SECRET_KEY", "DATA_DIR", "STATIC_ROOT", "ALLOWED_HOSTS", "PROXY_COUNT"}
"""Settings that become something else than what is written, or whose default depends on others."""


def rows_below(heading: str) -> dict[str, str]:
    """The names and defaults of the table in that section of the guide."""
    _, _, after = (PROJECT / "docs" / "OPERATIONS.md").read_text().partition(f"\n{heading}\n")
    return dict(ROW.findall(re.split(r"^##+ ", after, flags=re.MULTILINE)[0]))


def documented() -> dict[str, str]:
    return rows_below("## Settings")


def exemplary() -> dict[str, str]:
    return dict(EXAMPLE.findall((PROJECT / ".env.example").read_text()))


def as_written(value: object) -> str:
    """A setting's value as one writes it into the environment."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_the_guide_has_a_row_for_every_variable_of_composes_own() -> None:
    compose = (PROJECT / "docker-compose.yml").read_text()
    used = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", compose))
    own = {name: default for name, default in used.items() if name not in site_variables()}
    assert rows_below("### Compose on the internet") == own


def test_the_guide_has_a_row_for_every_setting_and_no_other() -> None:
    assert documented().keys() == site_variables()


def test_the_guide_gives_the_defaults_of_the_example() -> None:
    assert documented() == exemplary()


def test_the_defaults_are_those_of_the_code() -> None:
    """Of those that the settings keep as they are, which are most."""
    names = sorted(site_variables() - MADE)
    kept = f"name: getattr(settings, name) for name in {names} if isinstance(getattr(settings, name, None), {PLAIN})"
    values = shown(f"{{{kept}}}")
    assert isinstance(values, dict)
    assert len(values) > 0.75 * len(names)
    assert {name: as_written(value) for name, value in values.items()} == {name: exemplary()[name] for name in values}
