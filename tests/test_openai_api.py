"""The generator over the OpenAI API against a real server on loopback that misbehaves as told."""

import json
import logging
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from corag.errors import ConfigError, ModelError
from corag.generators import generator_identity, load_generator
from corag.generators.breaker import CircuitBreaker
from corag.generators.openai_api import OpenAIGenerator
from corag.settings import GeneratorSettings
from corag.values import Prompt

SECRET = "sk-very-secret-42"


class Scripted(ThreadingHTTPServer):
    """Answers each request by echoing the user's text, unless `script[text]` still holds a misdeed for it."""

    daemon_threads = True

    def __init__(self, address=("127.0.0.1", 0)):
        super().__init__(address, Handler)
        self.script = {}
        self.everything = None
        self.seen = Counter()
        self.bodies = []
        self.headers_seen = []
        self.lock = threading.Lock()
        self.running = 0
        self.most_at_once = 0

    def handle_error(self, request, client_address):
        """Broken connections are part of the play."""

    def next_misdeed(self, text):
        """What to do wrong for `text` this time."""
        with self.lock:
            self.seen[text] += 1
            if self.everything:
                return self.everything
            return self.script[text].pop(0) if self.script.get(text) else None


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def log_message(self, *args):
        """Stay silent."""

    def reply(self, status, body, headers=(), content_type="application/json"):
        """Send `body`."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        """The list of models."""
        if self.server.everything:
            self.reply(500, b"{}")
            return
        model = {"id": "tiny", "object": "model", "created": 0, "owned_by": "test", "max_model_len": 2048}
        self.reply(200, json.dumps({"object": "list", "data": [model]}).encode())

    def do_POST(self):
        """A completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
            self.server.running += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.running)
        try:
            self.misbehave_or_answer(body)
        finally:
            with self.server.lock:
                self.server.running -= 1

    def misbehave_or_answer(self, body):
        """Do as scripted."""
        text = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        misdeed = self.server.next_misdeed(text)
        if misdeed == "hang":
            time.sleep(1.0)
        elif misdeed == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        elif misdeed == "truncated":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "5000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        elif misdeed == "html":
            self.reply(200, b"<html>gateway</html>", content_type="text/html")
            return
        elif misdeed == "broken json":
            self.reply(200, b'{"choices": [')
            return
        elif misdeed == "no choices":
            self.reply(200, b'{"choices": []}')
            return
        elif isinstance(misdeed, int):
            error = {"error": {"message": f"status {misdeed} for {self.headers['Authorization']}"}}
            headers = [("Retry-After", "0.05")] if misdeed == 429 else []
            self.reply(misdeed, json.dumps(error).encode(), headers)
            return
        time.sleep(0.01)
        content = "odd \ud835 answer" if text == "odd" else f" echo {text} "
        self.reply(200, json.dumps(self.completion(content, chat="messages" in body)).encode())

    def completion(self, content, chat):
        """A whole answer."""
        choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
        choice |= {"message": {"role": "assistant", "content": content}} if chat else {"text": content}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return {"id": "1", "object": "x", "created": 0, "model": "tiny", "choices": [choice], "usage": usage}


@pytest.fixture
def server():
    """The scripted server, serving."""
    serving = Scripted()
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()


def settings(server, **changes):
    """Settings for `server` with `changes`."""
    return GeneratorSettings.model_validate(
        {
            "kind": "openai",
            "model": "tiny",
            "base_url": f"http://127.0.0.1:{server.server_address[1]}/v1",
            "concurrency": 4,
            "timeout_seconds": 0.5,
            "max_retries": 3,
            "breaker_pause_seconds": 0.05,
            "give_up_seconds": 0.3,
            **changes,
        }
    )


def generator(server, **changes):
    """A generator with short pauses."""
    return OpenAIGenerator(settings(server, **changes), retry_seconds=0.02)


def prompts(*texts):
    """One prompt a text."""
    return [Prompt("Be brief.", text) for text in texts]


def test_answers_come_in_order_with_the_servers_counts(server):
    """Each answer belongs to its prompt; tokens are the server's usage; decoding is greedy and bounded."""
    texts = [f"question {number}" for number in range(20)]
    answers = generator(server, max_answer_tokens=9).generate(prompts(*texts))
    assert [one.text for one in answers] == [f"echo {text}" for text in texts]
    assert {(one.prompt_tokens, one.answer_tokens, one.finish_reason, one.error) for one in answers} == {
        (7, 3, "stop", None)
    }
    assert server.bodies[0]["temperature"] == 0.0
    assert server.bodies[0]["max_tokens"] == 9
    assert server.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_no_more_requests_at_once_than_allowed(server):
    """Concurrency is bounded, and used."""
    generator(server, concurrency=3).generate(prompts(*map(str, range(30))))
    assert 2 <= server.most_at_once <= 3


@pytest.mark.parametrize(
    "misdeed", [500, 503, 429, 408, "hang", "reset", "truncated", "html", "broken json", "no choices"]
)
def test_what_may_heal_is_tried_again(server, misdeed):
    """A failure that passes ends in the answer, asked for once more, and does no harm to its neighbours."""
    server.script["bad"] = [misdeed]
    answers = generator(server).generate(prompts("good", "bad", "fine"))
    assert [one.text for one in answers] == ["echo good", "echo bad", "echo fine"]
    assert server.seen == {"good": 1, "bad": 2, "fine": 1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_heal_is_not_tried_again(server, status):
    """Any other 4xx fails its own prompt at once, with the server's words."""
    server.script["bad"] = [status] * 9
    good, bad = generator(server).generate(prompts("good", "bad"))
    assert good.error is None
    assert bad.error.startswith(f"HTTP {status}: status {status}")
    assert bad.text == ""
    assert server.seen["bad"] == 1


def test_a_prompt_that_always_fails_ends_after_its_retries(server):
    """A poison prompt is tried max_retries + 1 times and fails alone."""
    server.script["bad"] = [500] * 99
    *good, bad = generator(server).generate(prompts(*"abcdefgh", "bad"))
    assert all(one.error is None for one in good)
    assert "HTTP 500" in bad.error
    assert "after 4 attempts" in bad.error
    assert server.seen["bad"] == 4


def test_a_dead_server_ends_the_batch_in_bounded_time(server):
    """BAT-07: while the server is down every prompt fails soon and with the reason; the next batch after one look."""
    server.everything = 500
    asking = generator(server)
    start = time.monotonic()
    answers = asking.generate(prompts(*map(str, range(50))))
    assert all("is down" in one.error or "HTTP 500" in one.error for one in answers)
    assert sum("is down" in one.error for one in answers) > 40
    assert time.monotonic() - start < 5
    requests = server.seen.total()
    start = time.monotonic()
    assert all("is down" in one.error for one in asking.generate(prompts(*map(str, range(50)))))
    assert time.monotonic() - start < 0.3
    assert server.seen.total() == requests


def test_a_server_that_comes_back_answers_every_prompt(server):
    """An outage in mid-batch pauses the batch; once the server is back all prompts are answered."""
    server.everything = 503
    texts = [str(number) for number in range(20)]
    asking = generator(server, give_up_seconds=20.0)
    threading.Timer(0.6, lambda: setattr(server, "everything", None)).start()
    answers = asking.generate(prompts(*texts))
    assert [one.text for one in answers] == [f"echo {text}" for text in texts]


def test_failures_of_an_outage_do_not_count_against_a_prompt(server):
    """After an outage a prompt has all its retries again: two more failures do not end it."""
    server.everything = 503
    server.script["a"] = [500, 500]
    asking = generator(server, concurrency=1, give_up_seconds=20.0)
    threading.Timer(0.5, lambda: setattr(server, "everything", None)).start()
    (answer,) = asking.generate(prompts("a"))
    assert answer.text == "echo a"


def test_a_given_up_server_is_used_again_when_it_is_back(server):
    """After giving up, the next batch finds the server that came back."""
    server.everything = 500
    asking = generator(server)
    asking.generate(prompts(*"abcdef"))
    server.everything = None
    assert [one.text for one in asking.generate(prompts("a"))] == ["echo a"]


def test_nobody_listening_is_a_failure_not_a_crash(server):
    """A refused connection ends in one reason a prompt, and `served_models` says what to do."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        asking = generator(server, base_url=url)
        assert all(one.error for one in asking.generate(prompts("a", "b")))
        with pytest.raises(ModelError, match=r"correct generator\.base_url"):
            asking.served_models()


def test_the_key_comes_from_the_environment_and_stays_secret(server, monkeypatch, caplog):
    """The key is sent and appears in no log line and no error, even where the server repeats it."""
    monkeypatch.setenv("CORAG_TEST_KEY", SECRET)
    server.script["bad"] = [401]
    asking = generator(server, api_key_env="CORAG_TEST_KEY")
    with caplog.at_level(logging.DEBUG, logger="corag"):
        (bad,) = asking.generate(prompts("bad"))
    assert server.headers_seen[0]["authorization"] == f"Bearer {SECRET}"
    assert "***" in bad.error
    assert SECRET not in bad.error + caplog.text + asking.identity


def test_without_a_key_a_local_server_still_gets_one(server, monkeypatch):
    """Local servers want any key: the word EMPTY."""
    monkeypatch.delenv("CORAG_TEST_KEY", raising=False)
    generator(server, api_key_env="CORAG_TEST_KEY").generate(prompts("a"))
    assert server.headers_seen[0]["authorization"] == "Bearer EMPTY"


def test_a_lone_surrogate_is_replaced_both_ways(server):
    """Text that is no valid Unicode neither stops a request nor leaves in an answer."""
    odd, other = generator(server).generate(prompts("odd", "x\ud835"))
    assert odd.text == "odd ? answer"
    assert other.error is None


def test_plain_prompts_use_the_completions_endpoint(server):
    """For a base model the two messages are sent as one text."""
    (answer,) = generator(server, chat_template="plain").generate(prompts("why?"))
    assert server.bodies[0]["prompt"] == "Be brief.\n\nwhy?\n\nAnswer:"
    assert answer.text.startswith("echo Be brief.")


def test_served_models_tell_their_length(server):
    """What `doctor` compares with the configuration: names and context lengths."""
    assert generator(server).served_models() == {"tiny": 2048}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "other"}, r"does not serve 'other' but tiny; correct generator\.model"),
        ({"context_length": 4096}, r"reads 2048 tokens, generator\.context_length says 4096"),
        ({}, r"counts 7 tokens where generator\.tokenizer counts \d+ .* would not hold"),
    ],
    ids=["another name", "a shorter context", "other tokens"],
)
def test_a_server_that_does_not_fit_is_told_in_one_line(server, changes, words):
    """The doctor compares name, context length and the tokens of a prompt (this server always says 7)."""
    from corag.generators.openai_check import check_server
    from corag.packaged import minilm_folder

    given = {"tokenizer": str(minilm_folder()), "chat_template": "plain", **changes}
    with pytest.raises(ModelError, match=words) as told:
        check_server(generator(server, **given), settings(server, **given))
    assert "\n" not in str(told.value)


def test_prompts_are_counted_by_the_configured_tokenizer(server, tmp_path):
    """`count_prompt` uses generator.tokenizer; a tokenizer that is not there is named."""
    from corag.packaged import minilm_folder

    counting = generator(server, tokenizer=str(minilm_folder()), chat_template="plain")
    assert counting.count_prompt(Prompt("Be brief.", "Why?")) == 7
    with pytest.raises(ModelError, match="absent"):
        generator(server, tokenizer=str(tmp_path / "absent")).count_prompt(Prompt("", "a"))


def test_a_model_name_is_needed(server):
    """Without a model name the configuration is refused before any request."""
    with pytest.raises(ConfigError, match=r"generator\.model is empty"):
        load_generator(settings(server, model=None), None)
    assert generator_identity(settings(server)) == load_generator(settings(server), None).identity


def test_the_breaker_lets_one_thread_probe():
    """While the breaker is open many waiting threads cost one probe a pause, and all learn its result."""
    probes = []
    breaker = CircuitBreaker(
        lambda: probes.append(1) or len(probes) == 3, failures=2, pause_seconds=0.02, give_up_seconds=5
    )
    assert breaker.wait()
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert probes == []
    breaker.failed()
    results = []
    threads = [threading.Thread(target=lambda: results.append(breaker.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert results == [True] * 8
    assert len(probes) == 3
    assert breaker.outages == 1
