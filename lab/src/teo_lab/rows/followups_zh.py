"""Chinese follow-ups from requests with slots: another value, a pronoun, an answer to a question."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence

from teo_lab.rows import chinese
from teo_lab.rows.choices import draw_reply, replies, word_set
from teo_lab.rows.requests import Draft, Request, SlotValue

_GENERAL = ("那{}呢", "那{}呢", "{}呢", "{}呢")
_ORDERS = (*_GENERAL, "换成{}", "改成{}", "还有{}")
_FORMS = {
    "dishName": _GENERAL,
    "ingredient": _GENERAL,
    "endLoc_city": ("那{}呢", "到{}呢", "那到{}的呢", "去{}的呢", "换成{}"),
    "startLoc_city": ("从{}出发呢", "那从{}出发呢", "从{}走呢", "那从{}呢"),
    "Dest": ("那{}呢", "到{}呢", "那到{}的呢"),
    "Src": ("从{}出发呢", "那从{}呢"),
    "endLoc_poi": ("那{}呢", "{}呢", "到{}呢", "那去{}呢"),
    "startDate_date": ("那{}呢", "{}呢", "{}的呢", "那{}的呢", "换成{}"),
    "datetime_date": ("那{}呢", "{}呢", "那{}的呢"),
    "tvchannel": _GENERAL,
    "author": ("那{}的呢", "{}的呢", "换成{}的", "那{}呢"),
    "artist": ("那{}的呢", "{}的呢", "换成{}的", "那{}呢"),
    "song": ("换成{}", "那{}呢", "{}呢", "再来一首{}"),
    "keyword": _GENERAL,
    "content": _GENERAL,
    "name": _ORDERS,
    "location_city": _GENERAL,
    "location_poi": _GENERAL,
    "receiver": ("那{}呢", "还有{}", "换成{}"),
    "city": ("那{}呢", "那{}呢", "{}呢", "{}的呢", "那{}怎么样"),
    "date": ("那{}呢", "{}呢", "那{}怎么样"),
    "person": ("那{}呢", "换成{}", "还有{}", "不对，{}"),
    "word": _GENERAL,
    "dish": _GENERAL,
    "app": ("{}呢", "还有{}", "那{}呢"),
    "from": ("从{}出发呢", "那从{}呢", "那{}呢"),
    "to": ("到{}呢", "那到{}呢", "那到{}的呢"),
    "country": _GENERAL,
    "day": _GENERAL,
}
_ASKED = {
    "endLoc_city": "end",
    "startLoc_city": "start",
    "Dest": "end",
    "Src": "start",
    "to": "end",
    "from": "start",
    "startDate_date": "date",
    "city": "city",
    "date": "date",
    "person": "person",
    "author": "author",
    "artist": "artist",
    "tvchannel": "channel",
}
_NAMED_INTENTS = word_set(
    """
    telephone/DIAL message/SEND stock/QUERY tvchannel/PLAY website/OPEN app/LAUNCH video/QUERY
    lottery/NUMBER_QUERY telephone/QUERY contacts/QUERY
    """
)
_TEMPLATES = {
    "person": (
        "把_的号码发给我",
        "_的电话号码是多少",
        "给_发个微信",
        "给_发条短信说我晚点到",
        "_的生日是哪天",
        "给_发一封邮件",
        "把照片发给_",
        "提醒我明天去看_",
        "给_发个红包",
        "问一下_什么时候有空",
        "帮我约_周末吃饭",
        "把_加到群里",
    ),
    "place": (
        "_有什么好玩的地方",
        "_有什么好吃的",
        "_明天下雨吗",
        "_冷不冷",
        "_有哪些五星级酒店",
        "_有机场吗",
        "_的房价怎么样",
        "_有哪些大学",
        "帮我在_订一个酒店",
        "在_租车多少钱",
        "_现在多少度",
        "_堵车吗",
        "查一下_的酒店",
        "_有地铁吗",
    ),
}
"""Requests about a person or a place, `_` in the place of the name."""
_WOMEN = ("妈", "姐", "妹", "姨", "婆", "奶奶", "姥", "姑", "嫂", "女", "娘")
_NOT_NAMES = re.compile(r"[我你您的了吗呢啊吧是有不么个电话短信号码家给]|客服|移动|联通|电信|银行|公司|\d")


def usable(request: Request, slot: SlotValue) -> bool:
    """Tell whether a slot's value is a phrase that another may stand in for."""
    if slot.name not in _FORMS or not 1 < len(slot.value) <= 8 or len(request.text) > 24:
        return False
    if slot.name == "name" and request.intent not in _NAMED_INTENTS:
        return False
    if slot.name == "person" and _NOT_NAMES.search(slot.value):
        return False
    after = request.text[slot.end :]
    if after.startswith(("了", "市")) or (
        request.intent in ("message/SEND", "email/SEND") and (after == "的" or slot.name == "content")
    ):
        return False
    if slot.name == "startLoc_city" and not re.match(r"到|去|至|飞|出发|往|开", after):
        return False
    # A request that is nothing but its value has nothing to carry over.
    rest = request.text[: slot.start] + request.text[slot.end :]
    return len(rest) >= 2 and slot.value not in rest


class ChineseSubstitution:
    """那上海呢 after 北京天气怎么样."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.open: dict[tuple[str, str], list[tuple[Request, SlotValue]]] = defaultdict(list)
        for request in chinese.find_slots(requests):
            for slot in request.slots:
                if usable(request, slot):
                    self.open[(request.intent, slot.name)].append((request, slot))
        self.keys = [key for key, found in self.open.items() if len(found) > 1]
        self.weights = [len(self.open[key]) ** 0.6 for key in self.keys]

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up that names one other value."""
        if not self.keys:
            return None
        key = rng.choices(self.keys, self.weights)[0]
        (request, slot), (_, other) = rng.choice(self.open[key]), rng.choice(self.open[key])
        if other.value in request.text or slot.value in other.value:
            return None
        value = other.value
        forms = _FORMS[slot.name]
        if slot.name in ("author", "artist") and not request.text[slot.end :].startswith("的"):
            forms = _GENERAL
        if slot.name == "city" and not re.search(r"怎么样|如何", request.text):
            forms = forms[:3]
        rewrite = request.replaced((slot, value))
        utterance = rng.choice(forms).format(value)
        if utterance.startswith("不对"):
            rewrite = f"不对，{rewrite}"
        reply = None if rng.random() < 0.08 else draw_reply("zh", chinese.topic(request.intent), rng)
        return chinese.finish(request.text, reply, utterance, rewrite, rng)


class ChineseClarification:
    """宁波 after 查一下杭州的火车票 and 请问您要去哪里."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.open: dict[str, list[tuple[Request, SlotValue]]] = defaultdict(list)
        for request in chinese.find_slots(requests):
            for slot in request.slots:
                if slot.name in _ASKED and usable(request, slot) and self.shorten(request, slot) is not None:
                    self.open[_ASKED[slot.name]].append((request, slot))
        self.asked = list(self.open)
        self.weights = [min(len(found), 150) for found in self.open.values()]

    @staticmethod
    def shorten(request: Request, slot: SlotValue) -> str | None:
        """Return the request without the slot and what belongs to it; none if that is no request."""
        before, after = request.text[: slot.start], request.text[slot.end :]
        asked = _ASKED[slot.name]
        if asked == "end":
            if before[-1:] not in ("到", "去", "至", "飞") or not after.startswith("的") or "从" in before:
                return None
            before = before[:-1]
        elif asked == "start":
            if not after.startswith(("到", "去", "飞")):
                return None
            before = before.removesuffix("从")
        elif asked in ("author", "artist"):
            if not after.startswith("的"):
                return None
            after = after[1:]
        elif asked == "person":
            before = before.removesuffix("给")
            if before + after not in ("打电话", "打个电话", "发短信", "发微信", "发个短信"):
                return None
        elif asked in ("city", "date", "channel"):
            after = after.removeprefix("市") if asked == "city" else after
            after = after.removeprefix("的")
            if before.endswith("的"):
                return None
        short = before + after
        return short if len(short) >= 3 and not short.startswith(("的", "在")) else None

    def draw(self, rng: random.Random) -> Draft | None:
        """Return an answer to the question that asks for what a request left out."""
        if not self.open:
            return None
        asked = rng.choices(self.asked, self.weights)[0]
        request, slot = rng.choice(self.open[asked])
        short = self.shorten(request, slot)
        if short is None:
            return None
        forms = {"end": ("{}", "到{}", "去{}"), "start": ("{}", "从{}")}
        utterance = rng.choice(forms.get(asked, ("{}", "{}", "{}吧"))).format(slot.value)
        if asked == "person" and "发" in request.text:
            asked = "receiver"
        return chinese.finish(short, rng.choice(replies("zh")[asked]), utterance, request.text, rng)


class ChinesePronoun:
    """给他发短信 after 给爸爸打电话, and 那边明天冷吗 after 去大连的机票."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.namings: dict[str, list[tuple[Request, SlotValue]]] = defaultdict(list)
        self.templates: dict[str, list[tuple[Request, SlotValue]]] = defaultdict(list)
        for request in chinese.find_slots(requests):
            for slot in request.slots:
                if usable(request, slot):
                    self._add(request, slot)
        for group, texts in _TEMPLATES.items():
            found = [
                (Request(text, "", f"template/{text}"), SlotValue("", text.index("_"), text.index("_") + 1, "_"))
                for text in texts
            ]
            self.templates[group] += found * (1 + len(self.templates[group]) // (2 * len(found)))
        self.groups = [group for group in ("person", "place") if self.namings[group] and self.templates[group]]

    def _add(self, request: Request, slot: SlotValue) -> None:
        kind = request.intent.partition("/")[0]
        if kind in ("telephone", "message", "contacts") and slot.name in ("name", "person"):
            if 2 <= len(slot.value) <= 3 and not _NOT_NAMES.search(slot.value):
                self.namings["person"].append((request, slot))
                if re.match(r"$|打|发|的电话|的号码", request.text[slot.end :]):
                    self.templates["person"].append((request, slot))
        elif slot.value in chinese.CITIES:
            if slot.name in ("endLoc_city", "Dest", "to", "city", "location_city"):
                self.namings["place"].append((request, slot))
            if slot.name == "city":
                self.templates["place"].append((request, slot))

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a second request with a pronoun, after a first one that has the name."""
        if not self.groups:
            return None
        group = rng.choice(self.groups)
        (first, named), (second, slot) = rng.choice(self.namings[group]), rng.choice(self.templates[group])
        rewrite = second.replaced((slot, named.value))
        if rewrite == first.text or (group == "place" and first.intent == second.intent):
            return None
        if group == "person" and _action(first.text) == _action(second.text):
            return None
        if group == "person":
            pronoun = "她" if any(mark in named.value for mark in _WOMEN) else "他"
        else:
            pronoun = rng.choice(("那边", "那里", "那儿", "当地"))
        after = second.text[slot.end :].removeprefix("市") if group == "place" else second.text[slot.end :]
        rewrite = second.text[: slot.start] + named.value + after
        utterance = second.text[: slot.start] + pronoun + after
        reply = None if rng.random() < 0.06 else draw_reply("zh", chinese.topic(first.intent), rng)
        return chinese.finish(first.text, reply, utterance, rewrite, rng)


def _action(text: str) -> str:
    """Return what a request does with a contact, so that a second one does something else."""
    if re.search(r"发|短信|消息|信息", text):
        return "send"
    return "ask" if re.search(r"号码|多少", text) else "call" if re.search(r"打|呼叫|联系|电话", text) else text
