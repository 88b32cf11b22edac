"""What the site costs, measured beside the designs it is compared with: `python -m testing.bench`, or `make bench`."""
