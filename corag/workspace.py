"""Where everything that corag writes is kept: one folder, one name a thing."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """The layout of the workspace folder. Folders are made when first asked for."""

    root: Path

    def folder(self, *parts: str) -> Path:
        """The folder `parts` below the root, made if need be."""
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def lancedb(self) -> Path:
        """The vector store."""
        return self.folder("lancedb")

    @property
    def memo(self) -> Path:
        """The SQLite file that remembers scores, generations and embeddings."""
        return self.folder("cache") / "memo.sqlite"

    @property
    def file_register(self) -> Path:
        """The SQLite file that remembers what each file of the corpus held."""
        return self.folder("cache") / "files.sqlite"

    @property
    def models(self) -> Path:
        """Converted model weights."""
        return self.folder("models")

    @property
    def quarantine(self) -> Path:
        """Records that could not be read, with file, line and reason."""
        return self.folder("quarantine")

    @property
    def sweep(self) -> Path:
        """Trials, labels and the record of the last sweep."""
        return self.folder("sweep")

    @property
    def runs(self) -> Path:
        """Progress of answering runs."""
        return self.folder("runs")

    @property
    def reports(self) -> Path:
        """Reports for people."""
        return self.folder("reports")

    @property
    def locks(self) -> Path:
        """Lock files; the operating system releases them when their owner dies."""
        return self.folder("locks")

    @property
    def prefect(self) -> Path:
        """Prefect's home where the user has not set one."""
        return self.folder("prefect")
