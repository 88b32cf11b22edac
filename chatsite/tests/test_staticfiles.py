"""Static files of a checkout in which nothing has been collected yet."""

from pathlib import Path

from chatsite.staticfiles import ModuleManifestStorage


def test_a_file_that_was_not_collected_is_linked_by_its_plain_name(tmp_path: Path) -> None:
    storage = ModuleManifestStorage(location=tmp_path / "none", base_url="/static/")
    assert storage.url("css/site.css") == "/static/css/site.css"
