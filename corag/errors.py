"""The errors a user can cause or mend.

    CoragError
    ├── ConfigError     the configuration cannot be used (file, key, value)
    ├── InputError      a file or record cannot be read (file, line)
    ├── ModelError      a model is missing, does not fit, or answered with nonsense
    ├── StoreError      the vector store is empty, locked, or holds another embedder's vectors
    ├── HeadroomError   ROUGE-L does not respond to the context: labels would be noise
    ├── LabelError      too few labels, or too few kinds of them, to train on
    ├── RegistryError   the tracking server or the model registry refuses or lacks something
    └── IncompleteError some records failed, the rest are done

Each message is one line that says what, where, and how to mend it; the command line turns it into
exit code 2, or 1 for IncompleteError.
"""


class CoragError(Exception):
    """Base of every error that is reported without a traceback."""


class ConfigError(CoragError):
    """The configuration cannot be used."""


class InputError(CoragError):
    """A file or record cannot be read."""


class ModelError(CoragError):
    """A model is missing, does not fit, or returned something that is no answer."""


class StoreError(CoragError):
    """The vector store is empty, locked, or was built by another embedder."""


class HeadroomError(CoragError):
    """The metric does not respond to the context on this data set (METHOD: headroom)."""


class LabelError(CoragError):
    """The labels cannot train an agent."""


class RegistryError(CoragError):
    """The tracking server or the model registry refuses, or lacks what was asked for."""


class IncompleteError(CoragError):
    """Some records failed and are listed; everything else is done and kept."""
