"""Translations: every language is complete, and the pages speak it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import Client
from django.utils.translation.template import templatize

CATALOGUES = sorted(settings.LOCALE_PATHS[0].glob("*/LC_MESSAGES/django.po"))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w+\}")
# Django makes Python of a template, for xgettext to read: `gettext(u'…')`, `_("…")`.
MARKED = re.compile(r"""\b(?:gettext|_)\(u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")

each_language = pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


def entries(path: Path) -> list[Message]:
    return [message for message in read(path) if message.id]


def texts_of_templates() -> set[str]:
    folder = settings.BASE_DIR / "templates"
    sources = {path: templatize(path.read_text(), origin=str(path)) for path in folder.rglob("*.html")}
    return {match[1:-1] for source in sources.values() for match in MARKED.findall(source)}


def texts_of_modules() -> set[str]:
    found = extract_from_dir(settings.BASE_DIR / "chat", method_map=[("**.py", "python")])
    return {str(text) for _file, _line, text, _comments, _context in found}


@each_language
def test_every_text_has_a_translation_that_somebody_has_looked_at(path: Path) -> None:
    assert [message.id for message in entries(path) if message.fuzzy or not message.string] == []


@each_language
def test_every_text_of_templates_and_modules_is_in_the_catalogue(path: Path) -> None:
    texts = texts_of_templates() | texts_of_modules()
    assert {"Yesterday", "Load earlier"} <= texts
    assert len(texts) > 100
    assert texts - {str(message.id) for message in entries(path)} == set()


@each_language
def test_a_translation_has_the_placeholders_of_its_text(path: Path) -> None:
    for message in entries(path):
        assert sorted(PLACEHOLDER.findall(str(message.string))) == sorted(PLACEHOLDER.findall(str(message.id)))


def test_a_folder_in_locale_is_all_that_another_language_needs() -> None:
    assert {code for code, _name in settings.LANGUAGES} == {"en", *(path.parts[-3] for path in CATALOGUES)}


def test_the_chosen_language_is_kept_and_anything_else_is_not(client: Client, db: None) -> None:
    client.post("/language/", {"language": "ko", "next": "/accounts/login/"})
    assert '<html lang="ko"' in client.get("/accounts/login/").content.decode()
    client.post("/language/", {"language": "xx", "next": "https://elsewhere.example/"})
    assert '<html lang="ko"' in client.get("/accounts/login/").content.decode()


def test_a_choice_leads_back_to_this_site_only(client: Client, db: None) -> None:
    answer = client.post("/language/", {"language": "ko", "next": "https://elsewhere.example/"})
    assert answer["Location"] == "/"
