"""vLLM as a server of its own on loopback, in the environment that `make vllm` sets up.

    python -m benchmarks.vllm_server [--port 8000]

serves the packaged SmolLM2, under the name smollm2, until it is stopped. The benchmarks and tests start it themselves.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corag.generators.convert import converted_smollm2
from corag.workspace import Workspace

PYTHON = Path(".venv-vllm/bin/python")
NAME = "smollm2"
CONTEXT_LENGTH = 2048
_START_SECONDS = 400


def main() -> None:
    """Serve in the foreground."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    model = converted_smollm2(Workspace(Path("workspace").absolute()).models)
    if not PYTHON.exists():
        sys.exit(f"{PYTHON}: vLLM is not set up; run `make vllm`")
    os.execve(PYTHON, serve_command(model, port), _environment())


def serve_command(model: Path, port: int) -> list[str]:
    """The command line that serves the model in the folder `model`."""
    return [
        str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port),
        "--model", str(model), "--served-model-name", NAME, "--dtype", "float32", "--enforce-eager",
        "--enable-prefix-caching", "--enable-prompt-tokens-details", "--max-model-len", str(CONTEXT_LENGTH),
    ]  # fmt: skip


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def vllm_server(model: Path) -> Iterator[str | None]:
    """The base URL of a server of the model in the folder `model`; None where vLLM is not set up."""
    if not PYTHON.exists():
        yield None
        return
    port = free_port()
    process = start_server(model, port, Path(os.devnull))
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        kill_server(process)


def start_server(model: Path, port: int, log: Path) -> "subprocess.Popen[bytes]":
    """A server that answers; what it says goes to `log`.

    Raises:
        RuntimeError: it ended, or did not answer within minutes.
    """
    with log.open("ab") as told:
        process = subprocess.Popen(
            serve_command(model, port), env=_environment(), stdout=told, stderr=told, start_new_session=True
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
    except RuntimeError:
        kill_server(process)
        raise
    return process


def kill_server(process: "subprocess.Popen[bytes]") -> None:
    """End a server with all of its processes; one that has ended already does no harm."""
    for number, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 20)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _environment() -> dict[str, str]:
    return os.environ | {"VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"vLLM ended with {process.returncode} before it served; start it by hand to see why")
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
                if response.status == 200:
                    return
        except OSError:
            time.sleep(1)
    raise RuntimeError(f"vLLM did not serve within {_START_SECONDS} s")


if __name__ == "__main__":
    main()
