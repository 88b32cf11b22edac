"""The texts of the demo model: what it answers is a pure function of the turns. Called by `demo`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from inference.engine import Turn

MAX_QUOTED_WORDS = 8
MAX_QUOTED_CHARACTERS = 60
LONG_CHAPTERS = 12


class Wish(StrEnum):
    """What a prompt can ask the demo model for."""

    MARKDOWN = "markdown"
    KOREAN = "korean"
    LONG = "long"
    SLOW = "slow"
    FAST = "fast"
    THINKING = "thinking"
    ERROR = "error"
    LENGTH = "length"


# English words count as whole words, Korean ones wherever they stand, since they take endings.
WISH_PATTERNS: dict[Wish, re.Pattern[str]] = {
    Wish.MARKDOWN: re.compile(
        r"\b(markdown|headings?|tables?|code|lists?|quotes?)\b|마크다운|표로|도표|코드|목록|인용", re.I
    ),
    Wish.KOREAN: re.compile(r"\b(korean|emojis?)\b|한국어|한글|이모지", re.I),
    Wish.LONG: re.compile(r"\b(long|longer)\b|길게|긴 글|긴 답", re.I),
    Wish.SLOW: re.compile(r"\b(slow|slowly)\b|천천히|느리게|느린", re.I),
    Wish.FAST: re.compile(r"\b(fast|faster|quick|quickly)\b|빨리|빠르게|빠른", re.I),
    Wish.THINKING: re.compile(r"\b(think|thinking|reason|reasoning)\b|생각|추론", re.I),
    Wish.ERROR: re.compile(r"\b(error|errors|fail|failure)\b|오류|에러|실패", re.I),
    Wish.LENGTH: re.compile(r"\b(length|truncated?)\b|길이|잘라|잘린", re.I),
}
HANGUL = re.compile("[가-힣]")
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DemoReply:
    """A whole reply, before anything of it is sent. `reasoning` may be empty."""

    reasoning: str
    content: str
    wishes: frozenset[Wish]


def reply_to(turns: Sequence[Turn]) -> DemoReply:
    """The reply to the last user turn; turns after it don't matter."""
    prompts = [turn.content for turn in turns if turn.role == "user"]
    prompt = prompts[-1] if prompts else ""
    wishes = frozenset(wish for wish, pattern in WISH_PATTERNS.items() if pattern.search(prompt))
    texts = KOREAN if HANGUL.search(prompt) or Wish.KOREAN in wishes else ENGLISH
    sections = [
        texts.greeting,
        texts.reaction.format(words=_quoted(prompt), number=len(prompts)),
        *(texts.sections[wish] for wish in Wish if wish in wishes and wish in texts.sections),
        *(_chapters(texts) if Wish.LONG in wishes else ()),
        texts.closing if wishes else texts.help,
    ]
    return DemoReply(texts.reasoning if Wish.THINKING in wishes else "", "\n\n".join(sections), wishes)


def rest_of(reply: DemoReply, kept: str) -> str:
    """What follows `kept` in the reply, or a closing sentence where nothing does."""
    rest = reply.content.removeprefix(kept) if reply.content.startswith(kept) else ""
    texts = KOREAN if HANGUL.search(kept) else ENGLISH
    return rest or texts.nothing_left


def _quoted(prompt: str) -> str:
    """The first words of the prompt, without anything that Markdown could take for its own."""
    words = " ".join(WORD.findall(prompt)[:MAX_QUOTED_WORDS]).replace("_", " ")
    return words[:MAX_QUOTED_CHARACTERS] or "…"


def _chapters(texts: Texts) -> list[str]:
    return [f"### {number}\n\n{texts.chapter.format(number=number)}" for number in range(1, LONG_CHAPTERS + 1)]


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one language."""

    greeting: str
    reaction: str
    sections: dict[Wish, str]
    chapter: str
    reasoning: str
    closing: str
    help: str
    nothing_left: str


MARKDOWN_EN = """\
## A tour of Markdown

Text may be **bold**, *italic*, ~~struck out~~ or `code`.

| Press | and |
| --- | --- |
| Stop | the reply ends where you see it |
| Continue | it goes on from there |
| Regenerate | it starts anew |

1. Numbered lists work,
2. and so do
   - nested ones.

```python
def stop(inference_id: str, position: int) -> str:
    \"\"\"What you saw is what is kept.\"\"\"
    return f"{inference_id} ends at {position}"
```

> The best interface is the one that does what it says."""

MARKDOWN_KO = """\
## 마크다운 둘러보기

글자는 **굵게**, *기울여서*, ~~지워서~~, `코드`로 쓸 수 있습니다.

| 누르면 | 이렇게 됩니다 |
| --- | --- |
| 중지 | 화면에 보이는 곳에서 답변이 끝납니다 |
| 이어쓰기 | 그 자리에서 계속합니다 |
| 다시 쓰기 | 처음부터 새로 씁니다 |

1. 번호 목록도 되고,
2. 그 안에
   - 목록을 또 넣을 수 있습니다.

```python
def stop(inference_id: str, position: int) -> str:
    \"\"\"본 것이 그대로 남습니다.\"\"\"
    return f"{inference_id}: {position}"
```

> 좋은 버튼은 쓰여 있는 그대로 움직입니다."""

ENGLISH = Texts(
    greeting=(
        "Hello! I am the demo model that comes with Chatsite. There is no neural network behind me, only a few "
        "prepared texts, so that you can try everything before you connect a real model with `OPENAI_BASE_URL`."
    ),
    reaction="You wrote “{words}”, which is message {number} of yours in this room.",
    sections={
        Wish.MARKDOWN: MARKDOWN_EN,
        Wish.SLOW: "You asked me to be slow to start, so I kept you waiting. Stop works during such a wait, too.",
        Wish.FAST: "You asked me to be fast, so these words come as quickly as your browser can show them.",
        Wish.THINKING: "What I thought before I answered stands above, folded away.",
        Wish.ERROR: "You asked for an error, so I shall break off in the middle of this and keep what you have read.",
        Wish.LENGTH: "You asked me to run out of length, so I shall stop half-way; press Continue for the rest.",
    },
    chapter=(
        "This is part {number} of a long reply. It has nothing new to tell, but it keeps the words coming, so that "
        "you can scroll up while they arrive, open this room in a second tab, reload the page, or walk away and "
        "come back. Press Stop whenever you like: this screen, every other tab and the saved text will end at the "
        "same letter, and the model is free at once."
    ),
    reasoning=(
        "The person wants to see me think. I have nothing to think with, but I can show where thoughts appear: "
        "above the answer, folded away, and stopped by the same button. Now to the answer."
    ),
    closing="That is all. Press Stop sooner next time, and see that exactly what you saw is kept. 🌊",
    help="""\
Put one or more of these words into your next message:

- **markdown**: headings, a table, code, lists, a quote
- **korean** or **emoji**: other scripts
- **long**: several minutes of text
- **slow**: a long wait before the first word
- **fast**: no pause between words
- **thinking**: thoughts before the answer
- **error**: a reply that fails
- **length**: a reply that is cut short

And press Stop at any time: what you see at that moment is exactly what is kept.""",
    nothing_left="\n\nThere is nothing more to say: the reply had ended here.",
)

KOREAN = Texts(
    greeting=(
        "안녕하세요! 👋 저는 Chatsite에 들어 있는 데모 모델입니다. 신경망은 없고 준비된 글만 몇 가지 있습니다. "
        "진짜 모델을 `OPENAI_BASE_URL`로 연결하기 전에 무엇이든 시험해 보세요. 🙂"
    ),
    reaction="“{words}”라고 쓰셨네요. 이 방에서 보내신 {number}번째 메시지입니다. 👩‍🚀",
    sections={
        Wish.MARKDOWN: MARKDOWN_KO,
        Wish.KOREAN: (
            "한국어와 이모지도 한 글자까지 정확합니다: 가나다라마바사, 👍🏽 🇰🇷 👨‍👩‍👧‍👦 ❤️‍🔥. "
            "중지를 누르면 보이는 글자에서 멈추고, 다시 열어도 똑같습니다."
        ),
        Wish.SLOW: "천천히 시작해 달라고 하셔서 기다리시게 했습니다. 기다리는 동안에도 중지할 수 있습니다.",
        Wish.FAST: "빠르게 답해 달라고 하셔서 쉬지 않고 쓰고 있습니다. ⚡",
        Wish.THINKING: "답하기 전에 한 생각은 위에 접혀 있습니다. 🤔",
        Wish.ERROR: "오류를 보여 달라고 하셔서 이 글을 쓰다가 도중에 끊어집니다. 읽으신 부분은 그대로 남습니다.",
        Wish.LENGTH: "길이 제한을 보여 달라고 하셔서 절반에서 멈춥니다. 이어쓰기를 누르면 나머지가 나옵니다.",
    },
    chapter=(
        "긴 답변의 {number}번째 부분입니다. 새로운 이야기는 없지만 글은 계속 이어집니다. 글이 오는 동안 위로 "
        "올려 보거나, 다른 탭에서 이 방을 열거나, 새로 고치거나, 자리를 비웠다가 돌아와 보세요. 언제든 중지를 누르면 "
        "이 화면과 다른 모든 탭, 그리고 저장된 글이 같은 글자에서 끝나고, 모델은 곧바로 쉬게 됩니다. 강물은 바위를 "
        "돌아 흐르고, 바람은 숲을 지나 산을 넘고, 별은 밤새 천천히 하늘을 건너갑니다. 그동안 한 글자도 빠지거나 두 번 "
        "나오지 않습니다. 🌊"
    ),
    reasoning=(
        "생각하는 모습을 보고 싶어 하신다. 생각할 머리는 없지만 생각이 어디에 나타나는지는 보여 줄 수 있다. "
        "답변 위에 접혀 있고 같은 버튼으로 멈춘다. 이제 답을 쓰자."
    ),
    closing="여기까지입니다. 다음에는 더 일찍 중지를 눌러 보세요. 본 그대로 남습니다. 🌊",
    help="""\
다음 메시지에 이런 말을 하나 이상 넣어 보세요.

- **마크다운**: 제목, 표, 코드, 목록, 인용
- **한국어**나 **이모지**: 다른 문자
- **길게**: 몇 분 동안 이어지는 글
- **천천히**: 첫 글자까지 오래 기다리기
- **빠르게**: 쉬지 않고 쓰기
- **생각**: 답하기 전의 생각
- **오류**: 실패하는 답변
- **길이**: 도중에 잘리는 답변

그리고 언제든 중지를 눌러 보세요. 그 순간 보이는 그대로 남습니다.""",
    nothing_left="\n\n더 드릴 말씀이 없습니다. 답변은 여기서 끝났습니다.",
)
