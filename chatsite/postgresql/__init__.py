"""Django's backend for PostgreSQL, with a pool that is well again as soon as the database is. An ENGINE of settings."""
