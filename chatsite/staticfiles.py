"""Static files with hashed names, also inside the `import` statements of our ES modules. Named by settings.STORAGES."""

from servestatic.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types there
    """Without a manifest (nothing collected yet) a page still links its files, by their plain names."""

    support_js_module_import_aggregation = True
    manifest_strict = False
