"""Prefect flows and the command line over them."""
