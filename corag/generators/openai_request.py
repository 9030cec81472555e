"""One request to a server with the OpenAI API, and which of its failures may heal by themselves."""

from typing import Any

from corag.embedders.base import clean
from corag.generators.base import printable
from corag.values import Generation, Prompt

_HEALING_STATUSES = frozenset({408, 429})
_LONGEST_RETRY_AFTER_SECONDS = 120.0


class PassingError(Exception):
    """A failure that may heal. `server_down` is False where the server answered, if only to ask for patience."""

    def __init__(self, reason: str, *, server_down: bool = True, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.server_down = server_down
        self.retry_after = retry_after


class LastingError(Exception):
    """A failure that trying again will not mend."""


def send_chat(client: Any, model: str, prompt: Prompt, max_tokens: int) -> Generation:
    """The server's answer to the two messages under its own chat template.

    Raises:
        PassingError: timeout, dropped connection, unreadable answer, or status 408, 429 or 5xx.
        LastingError: any other status.
    """
    messages = [{"role": "user", "content": clean(prompt.user)}]
    if prompt.system:
        messages.insert(0, {"role": "system", "content": clean(prompt.system)})
    response = _guarded(
        lambda: client.chat.completions.create(
            model=model, messages=messages, max_tokens=max_tokens, temperature=0.0, stream=False
        )
    )
    return _generation(response, lambda choice: choice.message.content)


def send_text(client: Any, model: str, text: str, max_tokens: int) -> Generation:
    """The server's continuation of a plain text, for a base model; raises as `send_chat`."""
    response = _guarded(
        lambda: client.completions.create(
            model=model, prompt=text, max_tokens=max_tokens, temperature=0.0, stream=False
        )
    )
    return _generation(response, lambda choice: choice.text)


def _guarded(send: Any) -> Any:
    import openai

    try:
        return send()
    except openai.APIStatusError as error:
        reason = f"HTTP {error.status_code}: {_message(error)}"
        if error.status_code >= 500:
            raise PassingError(reason, retry_after=_retry_after(error)) from None
        if error.status_code in _HEALING_STATUSES:
            raise PassingError(reason, server_down=False, retry_after=_retry_after(error)) from None
        raise LastingError(reason) from None
    except openai.APITimeoutError:
        raise PassingError("the server did not answer in time") from None
    except (openai.APIError, ValueError) as error:
        # Dropped connections, bodies cut short, and bodies that are no JSON.
        raise PassingError(f"the connection or its answer broke: {error.__cause__ or error}") from None


def _generation(response: Any, text_of: Any) -> Generation:
    choices = getattr(response, "choices", None)
    if not choices:
        raise PassingError("the server's answer holds no choices")
    usage = response.usage
    return Generation(
        text=printable(text_of(choices[0]) or ""),
        prompt_tokens=usage.prompt_tokens if usage else 0,
        answer_tokens=usage.completion_tokens if usage else 0,
        finish_reason=choices[0].finish_reason or "stop",
    )


def _message(error: Any) -> str:
    body = error.body
    if isinstance(body, dict) and body.get("message"):
        return str(body["message"])
    return str(error.message)


def _retry_after(error: Any) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER_SECONDS)
