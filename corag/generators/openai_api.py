"""Any server with the OpenAI API; in production vLLM."""

import os
import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

from corag.embedders.hub import TOKENIZER_FILES, model_folder
from corag.errors import ConfigError, ModelError
from corag.generators.base import failed
from corag.generators.breaker import CircuitBreaker
from corag.generators.chat import ChatFormat, load_chat_tokenizer, plain_text
from corag.generators.openai_request import LastingError, PassingError, send_chat, send_text
from corag.settings import GeneratorSettings
from corag.values import Generation, Prompt

_PROBE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 30.0
_FORGIVEN_OUTAGES = 3


class OpenAIGenerator:
    """Answers prompts over the OpenAI API: bounded concurrency, retries, and a circuit breaker.

    Timeouts, dropped connections, unreadable answers and the statuses 408, 429 and 5xx are tried again
    `max_retries` times, after a jittered pause that doubles from `retry_seconds` (or as the server's Retry-After
    says); any other 4xx fails at once. When `max_retries` attempts in a row fail, all requests pause until the
    server answers again, or fail together after `give_up_seconds`. The key is read from the environment and kept
    out of every message.

    Raises:
        ConfigError: no model is named.
    """

    def __init__(self, settings: GeneratorSettings, *, retry_seconds: float = 0.5) -> None:
        import openai

        self.identity = openai_identity(settings)
        self.name = str(settings.model)
        self.context_length = settings.context_length
        self._settings = settings
        self._retry_seconds = retry_seconds
        self._key = os.environ.get(settings.api_key_env) or "EMPTY"
        self._client = openai.OpenAI(
            base_url=settings.base_url, api_key=self._key, timeout=settings.timeout_seconds, max_retries=0
        )
        self._stopped = threading.Event()
        self._breaker = CircuitBreaker(
            self._is_up,
            failures=max(1, settings.max_retries),
            pause_seconds=settings.breaker_pause_seconds,
            give_up_seconds=settings.give_up_seconds,
            sleep=self._stopped.wait,
        )

    def count_prompt(self, prompt: Prompt) -> int:
        """Tokens of the prompt by `generator.tokenizer` (or the model's own) and its chat template.

        Raises:
            ModelError: the tokenizer cannot be found.
        """
        return len(self._chat.ids(prompt))

    def served_models(self) -> dict[str, int | None]:
        """The models that the server offers, with the context length in tokens where it tells.

        Raises:
            ModelError: the server does not answer.
        """
        import openai

        try:
            offered = self._client.with_options(timeout=_PROBE_SECONDS).models.list()
        except openai.OpenAIError as error:
            raise ModelError(
                f"{self._settings.base_url}: the generator's server does not answer ({self._hidden(str(error))}); "
                "start it, or correct generator.base_url"
            ) from None
        return {model.id: (model.model_extra or {}).get("max_model_len") for model in offered.data}

    def generate(self, prompts: Sequence[Prompt]) -> list[Generation]:
        """One generation a prompt, in the order of `prompts`; a request that fails for good has an `error`.

        Prompts that share a beginning are sent next to each other, for servers that cache prefixes. Several threads
        may generate at once; the limit of concurrent requests holds for each of them.
        """
        self._breaker.renew()
        if len(prompts) == 1:
            return [self._without_key(self._answer(prompts[0]))]
        order = sorted(range(len(prompts)), key=lambda index: (prompts[index].system, prompts[index].user))
        with ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="generate") as pool:
            try:
                answers = pool.map(self._answer, [prompts[index] for index in order])
                generations = dict(zip(order, answers, strict=True))
            except BaseException:
                # An interrupt must not wait for pauses and retries.
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [self._without_key(generations[index]) for index in range(len(prompts))]

    @property
    def given_up(self) -> bool:
        """Whether the server is down and did not come back within `give_up_seconds`."""
        return self._breaker.given_up

    def close(self) -> None:
        """Close the connections; requests on their way fail."""
        self._stopped.set()
        self._client.close()

    @cached_property
    def _chat(self) -> ChatFormat:
        folder = model_folder(self._settings.tokenizer or self.name, TOKENIZER_FILES)
        return ChatFormat(load_chat_tokenizer(folder, self.name), self._settings.chat_template, self.name)

    def _answer(self, prompt: Prompt) -> Generation:
        retries = self._settings.max_retries
        attempt, forgiven, outages = 0, 0, self._breaker.outages
        while not self._stopped.is_set():
            if not self._breaker.wait():
                return failed(f"the server at {self._settings.base_url} is down and did not come back in time")
            if self._breaker.outages > outages and forgiven < _FORGIVEN_OUTAGES:
                # What failed because the server was down does not count against this prompt.
                attempt, forgiven, outages = 0, forgiven + 1, self._breaker.outages
            try:
                generation = self._send(prompt)
            except LastingError as error:
                self._breaker.succeeded()
                return failed(str(error))
            except PassingError as error:
                if error.server_down:
                    self._breaker.failed()
                if attempt >= retries:
                    return failed(f"{error} (after {attempt + 1} attempts)")
                self._stopped.wait(self._pause(attempt) if error.retry_after is None else error.retry_after)
                attempt += 1
            else:
                self._breaker.succeeded()
                return generation
        return failed("interrupted")

    def _send(self, prompt: Prompt) -> Generation:
        limit = self._settings.max_answer_tokens
        if self._settings.chat_template == "plain":
            return send_text(self._client, self.name, plain_text(prompt.system, prompt.user), limit)
        return send_chat(self._client, self.name, prompt, limit)

    def _pause(self, attempt: int) -> float:
        """Seconds before the next attempt; the jitter keeps many requests from coming back at the same moment."""
        longest = min(_LONGEST_PAUSE_SECONDS, self._retry_seconds * 2**attempt)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def _is_up(self) -> bool:
        """Whether the server answers: any status of its own below 500 will do."""
        import openai

        try:
            self._client.with_options(timeout=_PROBE_SECONDS).models.list()
        except openai.APIStatusError as error:
            return error.status_code < 500
        except (openai.OpenAIError, ValueError):
            return False
        return True

    def _without_key(self, generation: Generation) -> Generation:
        return replace(generation, error=self._hidden(generation.error)) if generation.error is not None else generation

    def _hidden(self, text: str) -> str:
        return text if self._key == "EMPTY" else text.replace(self._key, "***")


def openai_identity(settings: GeneratorSettings) -> str:
    """The identity of the generator of `settings`; the server's weights are known by their name alone.

    Raises:
        ConfigError: no model is named.
    """
    if settings.model is None:
        raise ConfigError("generator.model is empty; name the model as the server at generator.base_url calls it")
    template = "plain" if settings.chat_template == "plain" else "server"
    return (
        f"openai {settings.model} at {settings.base_url} template={template} "
        f"max_answer_tokens={settings.max_answer_tokens} greedy"
    )
