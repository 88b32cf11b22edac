"""What axe finds on a page that keeps somebody out."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

from chat.tests.page.screen import Screen


def violations(screen: Screen) -> list[str]:
    """Each rule that is broken, with the first place."""
    found = Axe().run(screen.page).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found]
