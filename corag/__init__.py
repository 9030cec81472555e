"""The library: retrieval-augmented generation under a token budget, without any orchestration."""

__version__ = "0.1.0"
