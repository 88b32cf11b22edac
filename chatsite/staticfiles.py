"""Static files with hashed names, also inside the `import` statements of our ES modules. Named by settings.STORAGES."""

from servestatic.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types there
    """Before anything is collected a page links its files by their plain names, instead of failing."""

    support_js_module_import_aggregation = True

    def stored_name(self, name: str) -> str:
        try:
            stored: str = super().stored_name(name)
        except ValueError:
            return name
        return stored
