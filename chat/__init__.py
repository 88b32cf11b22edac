"""Rooms, messages and inferences as rows; who may see what; the socket, the pages, the API and the admin."""
