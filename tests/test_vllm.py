"""Against a real vLLM server: token counts, the prefix cache, a batch, faults, and the server's death."""

import json
import random
import signal
import urllib.request
from types import SimpleNamespace

import pytest

from benchmarks.faulty_proxy import FaultyProxy
from benchmarks.stand_in_server import serving
from benchmarks.vllm_server import CONTEXT_LENGTH, NAME, PYTHON, free_port, start_server
from corag.generators.openai_api import OpenAIGenerator
from corag.generators.openai_check import check_server
from corag.settings import GeneratorSettings
from corag.values import Prompt
from tests.night_processes import Nightly, ended, kill, prefect_processes, wait_for

pytestmark = [pytest.mark.vllm, pytest.mark.skipif(not PYTHON.exists(), reason="`make vllm` was not run")]

BATCH = 64
PATIENT = {
    "model": NAME,
    "concurrency": 16,
    "timeout_seconds": 60.0,
    "max_answer_tokens": 8,
    "context_length": CONTEXT_LENGTH,
    "breaker_pause_seconds": 0.5,
}


class Server:
    """vLLM at one address, to be killed and started again."""

    def __init__(self, model, log):
        self.model, self.log, self.port = model, log, free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.process = start_server(model, self.port, log)

    def kill(self):
        """SIGKILL it with all of its processes."""
        import os

        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def start(self):
        """Serve again at the same address."""
        self.process = start_server(self.model, self.port, self.log)


@pytest.fixture(scope="module")
def vllm(tmp_path_factory, smollm2_folder):
    """One server for all tests: it takes a minute to start."""
    server = Server(smollm2_folder, tmp_path_factory.mktemp("vllm") / "log.txt")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def nightly(tmp_path_factory, smollm2_folder, vllm):
    """A project of 300 questions whose corpus is indexed, on a Prefect server of its own."""
    with prefect_processes(tmp_path_factory.mktemp("prefect")) as environment:
        project = Nightly(tmp_path_factory.mktemp("nightly"), smollm2_folder, environment)
        project.configure(vllm, **PATIENT)
        ended(project.start("ingest"))
        yield project


def answered(project, out, qids=None):
    """Check that each question has exactly one answered line, within its budget."""
    rows = project.rows(out)
    assert [row["qid"] for row in rows] == (qids or project.qids)
    assert {row["status"] for row in rows} == {"answered"}
    assert all(row["context_tokens"] <= row["budget"] for row in rows)
    assert all(row["citations"] and row["answer"] for row in rows)


def test_names_lengths_and_tokens_agree(vllm, smollm2_folder):
    """The doctor's comparison holds: the tokenizer counts what the server's usage says, template and all."""
    settings = GeneratorSettings(kind="openai", tokenizer=str(smollm2_folder), base_url=vllm.base_url, **PATIENT)
    told = check_server(OpenAIGenerator(settings), settings)
    assert f"reads {CONTEXT_LENGTH} tokens" in told


def test_a_doctor_finds_the_server_well_and_a_wrong_name_not(nightly, vllm):
    """`corag doctor` ends with 0; with a model that is not served it ends with 2 and says which one is."""
    nightly.configure(vllm, **PATIENT)
    ended(nightly.start("doctor"))
    nightly.configure(vllm, **PATIENT | {"model": "another"})
    process = nightly.start("doctor")
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 2
    assert f"does not serve 'another' but {NAME}" in out.decode()


def test_a_shared_beginning_is_served_from_the_prefix_cache(vllm, smollm2_folder):
    """Of a second prompt with the same context the server has read most already."""
    context = " ".join(f"The mill number {number} grinds rye for eleven bakers." for number in range(40))

    def cached(question):
        body = {
            "model": NAME,
            "max_tokens": 4,
            "messages": [{"role": "user", "content": f"{context}\n\n{question}"}],
        }
        request = urllib.request.Request(
            f"{vllm.base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            usage = json.load(response)["usage"]
        return ((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0) / usage["prompt_tokens"]

    assert cached("Who grinds?") < 0.5
    assert cached("What is ground?") > 0.5


def test_sixty_four_prompts_in_one_batch(vllm, smollm2_folder):
    """Each gets its own answer, in order; asked again alone, the first says the same."""
    settings = GeneratorSettings(kind="openai", tokenizer=str(smollm2_folder), base_url=vllm.base_url, **PATIENT)
    generator = OpenAIGenerator(settings.model_copy(update={"concurrency": BATCH}))
    prompts = [Prompt("You are a helpful assistant.", f"Repeat the number {number}.") for number in range(BATCH)]
    generations = generator.generate(prompts)
    assert [one.error for one in generations] == [None] * BATCH
    assert all(str(number) in one.text for number, one in enumerate(generations[:3]))
    assert {one.prompt_tokens for one in generations} == {generator.count_prompt(prompt) for prompt in prompts}


def test_a_server_killed_in_mid_batch_and_started_again(nightly, vllm):
    """Every question is answered exactly once: the batch pauses until the server is back."""
    nightly.configure(vllm, **PATIENT, give_up_seconds=400.0, max_retries=3)
    counting = FaultyProxy(vllm.base_url, faulty=0.0, seed=1)
    with serving(counting) as proxy:
        nightly.configure(SimpleNamespace(base_url=proxy.base_url), **PATIENT, give_up_seconds=400.0, max_retries=3)
        process = nightly.answer("restarted.jsonl")
        wait_for(lambda: proxy.delivered.total() >= BATCH, process)
        vllm.kill()
        vllm.start()
        ended(process)
        answered(nightly, "restarted.jsonl")
        assert set(proxy.delivered.values()) == {1}


def test_faults_and_ten_kills_lose_and_double_nothing(nightly, vllm):
    """300 questions, 30 % faults; then the same again with SIGKILL at ten random moments: one line a question."""
    moments = random.Random(11)
    with serving(FaultyProxy(vllm.base_url, faulty=0.3, seed=3)) as proxy:
        impatient = PATIENT | {"timeout_seconds": 20.0, "max_retries": 12}
        proxy.hang_seconds = 21.0
        nightly.configure(proxy, **impatient)
        ended(nightly.answer("faulty.jsonl"))
        answered(nightly, "faulty.jsonl")
        assert proxy.faults.total() > 0.2 * proxy.requests
        assert set(proxy.delivered.values()) == {1}
    with serving(FaultyProxy(vllm.base_url, faulty=0.3, seed=4)) as proxy:
        # Another limit is another generator: nothing that was answered above is remembered.
        nightly.configure(proxy, **impatient | {"max_answer_tokens": 7})
        for _ in range(10):
            process = nightly.answer("killed.jsonl")
            target = proxy.requests + moments.randrange(1, 40)
            wait_for(lambda: proxy.requests >= target, process)  # noqa: B023
            kill(process)
            assert not (nightly.root / "killed.jsonl").exists()
        ended(nightly.answer("killed.jsonl"))
        answered(nightly, "killed.jsonl")
        assert sum(count - 1 for count in proxy.delivered.values()) <= 10 * PATIENT["concurrency"]
