"""Chinese follow-ups from questions without slots: a phrase that two share, or an end that many share.

A phrase is what stands before a word that starts a predicate or a question (微信 in 微信怎么注销). It counts as a
phrase only if at least two questions have it in that position, so that no segmenter is needed.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from teo_lab.rows import chinese
from teo_lab.rows.choices import draw_reply
from teo_lab.rows.requests import Draft, Request

_TAIL = re.compile(
    r"(?:怎么|怎样|如何|为什么|为何|什么时候|在哪|是什么|是谁|是哪|多少|多大|多高|多久|好不好|好吗|好吃吗|好看吗|好用吗|能不能|能否|"
    r"可以|会不会|有什么|有哪些|有没有|有多|有几|要多|需要|几岁|几点|几号|属于|适合|应该|算不算|用什么|是不是|是几|叫什么|哪里|哪个)"
)
_PHRASE = re.compile(r"[\u4e00-\u9fffA-Za-z0-9]{2,8}")
_FUNCTION = re.compile(
    r"[我你您他她它这那谁哪么吗呢吧啊了着过的得地们很太都也还就又再不没是有在把被让给对和与跟从到去来要想会能可请问帮说看下上个些每]|"
    r"怎|什|如果|现在|今天|明天|知道|为啥|一下|告诉"
)
_NOT_NOUNS = re.compile(
    r"^(?:用|打|忘记|如|最|属|喝|吃|买|做|使用|设置|删除|开|关|写|找|查|求|学|玩|由|当|按|以|关于|解释|表示|逾期|充满)|"
    r"今年|明年|去年|后天|前天|昨天|最近|附近|周围|时间|一般|如今|目前|平时|有时|最|用|英语$|英文$|日语$|时候$|以后$|之后$|"
    r"已经|正在|刚|全部|自动$|提交$|出现|突然|为|只|才|多久|多少|外面|里面|本机|^[一二两三四五六七八九十几]+[吨斤克米里个]"
)
"""Phrases that a question starts with and a pronoun cannot stand for: times, places near by, verbs."""
_MENTION = re.compile(
    r"^的?(?:英语|英文|拼音|反义词|近义词|意思|笔画|部首|还|殖|偏旁)|怎么读|怎么写|怎么拼|造句|组词|组什么词|是什么意思|怎么说"
)
"""What is asked of a word, not of the thing that it names."""
_PERSON = re.compile(
    r"多大|几岁|老婆|老公|女朋友|男朋友|身高|体重|生日|粉丝|演技|年龄|结婚|星座|什么座|是谁|朝代|首诗|女儿|儿子|妻子|丈夫|唱过|演过|真名|原名|什么家|哪里人"
)
_HIM = re.compile(r"老婆|女朋友|妻子")
_HER = re.compile(r"老公|男朋友|丈夫")
_PEOPLE = re.compile(r"(?:人|妇|者|员|生|类|师|男|女|族|孩|孩子|宝宝)$")
_DAY = re.compile(r"[节日座月]$")
_MEN, _WOMEN = re.compile(r"[爷爸哥弟叔伯舅]"), re.compile(r"[妈姐妹姨婆奶姑嫂娘]")
_PLACE = re.compile(
    r"(?:[市省县区州]|中国|美国|日本|江苏|浙江|山东|河南|河北|湖南|湖北|广东|广西|四川|云南|福建|安徽|江西|陕西|山西|韩国|英国)$"
)
_ASKS = re.compile(
    r"怎么样?|如何|怎样|什么时候|什么|多少|可以|哪一?[天个里]|能不能|能否|有没有|为何|为什么|[是的吗要有在用几号]"
)
_CLEAN = re.compile(r"[\u4e00-\u9fffA-Za-z0-9]+[?？]?")
_VAGUE_TAILS = frozenset(
    [
        "有没有",
        "为什么",
        "好不好",
        "可以吗",
        "怎么样",
        "是什么",
        "是不是",
        "怎么没有",
        "有什么",
        "是哪个",
        "哪里有",
        "有什么好的",
    ]
)
"""Ends that anything may have before them: what two such questions share says nothing."""
_HELP = re.compile(r"设置|打开|关闭|取消|注销|开通|办理|下载|登录|密码|还款|额度|借|申请|恢复|修改|绑定")
_VERB_ENDS = frozenset("做买卖吃喝玩用开关打写读学办查找换修改退还借存取存治洗穿戴拍发送叫")
_ENDS_OPEN = frozenset("最更比等于被因前后时应该需并而且或但则以及")
_OBJECT_BEFORE = (
    "把",
    "给",
    "对",
    "用",
    "下载",
    "安装",
    "卸载",
    "打开",
    "关闭",
    "注销",
    "开通",
    "取消",
    "申请",
    "购买",
    "使用",
    "设置",
    "办理",
    "退出",
    "查询",
    "登录",
    "升级",
    "更新",
    "绑定",
    "删除",
    "修改",
)


def split_phrase(text: str) -> tuple[str, str] | None:
    """Return a question as the phrase it starts with and the rest; none if it starts otherwise."""
    match = _TAIL.search(text, 2)
    if match is None or not _CLEAN.fullmatch(text):
        return None
    phrase, tail = text[: match.start()], text[match.start() :]
    if "的" in phrase[2:-1]:
        cut = phrase.index("的", 2)
        phrase, tail = phrase[:cut], text[cut:]
    if not _PHRASE.fullmatch(phrase) or _FUNCTION.search(phrase) or _NOT_NOUNS.search(phrase):
        return None
    if phrase[-1] in _ENDS_OPEN or phrase[-1] in _VERB_ENDS:
        return None
    return (phrase, tail) if len(tail) >= 3 and not tail.startswith("的用") else None


class ChineseSharedPhrase:
    """怎么注销 or 它怎么注销 after another question about 微信."""

    def __init__(self, requests: Sequence[Request]) -> None:
        tails: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            if request.source != "smp2019" and len(request.text) <= 22:
                split = split_phrase(request.text)
                if split is not None:
                    tails[split[0]].append(request)
        self.starts = {phrase: found for phrase, found in tails.items() if len(set(map(_key, found))) > 1}
        self.ends = self._find_ends(requests)
        self.phrases = list(self.starts)
        # A phrase's weight grows slowly with its questions, so that one product does not drown the others.
        weights = (min(len(self.starts[phrase]), 30) ** 0.5 for phrase in self.phrases)
        self.bounds = list(itertools.accumulate(weights))

    def _find_ends(self, requests: Sequence[Request]) -> dict[str, list[str]]:
        """Return the questions that end in a phrase after a verb that takes it as an object."""
        ends: dict[str, list[str]] = defaultdict(list)
        pattern = re.compile(f"(.*(?:{'|'.join(_OBJECT_BEFORE)}))([\u4e00-\u9fffA-Za-z0-9]{{2,8}})$")
        for request in requests:
            match = pattern.match(request.text)
            if match and match.group(2) in self.starts and re.search(r"怎么|如何|怎样|在哪|帮我", match.group(1)):
                ends[match.group(2)].append(match.group(1))
        return ends

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a question that leaves out the phrase of the question before it, or has a pronoun for it."""
        if not self.phrases:
            return None
        phrase = rng.choices(self.phrases, cum_weights=self.bounds)[0]
        first = rng.choice(self.starts[phrase]).text
        if phrase in self.ends and rng.random() < 0.3:
            head = rng.choice(self.ends[phrase])
            return self._finish(first, head + rng.choice(("它", "这个", "那个")), head + phrase, rng)
        second = rng.choice(self.starts[phrase]).text
        tail = second[len(phrase) :]
        asked = first[len(phrase) :]
        if _overlap(asked, tail) or (_MENTION.search(asked) is None) != (_MENTION.search(tail) is None):
            return None
        pronoun = self._pronoun(phrase, tail, rng)
        if pronoun is None or rng.random() < 0.45:
            bare = tail[1:] if tail.startswith("的") else tail
            return self._finish(first, bare, second, rng) if len(bare) >= 3 else None
        return self._finish(first, pronoun + tail, second, rng)

    def _pronoun(self, phrase: str, tail: str, rng: random.Random) -> str | None:
        """Return a pronoun for the phrase; none for a person whose gender no question tells."""
        tails = "|".join(request.text[len(phrase) :] for request in self.starts[phrase])
        if _PEOPLE.search(phrase) or tail.startswith("哪"):
            return None
        if not _DAY.search(phrase) and (_PERSON.search(tails) or _MEN.search(phrase) or _WOMEN.search(phrase)):
            if _WOMEN.search(phrase) or _HER.search(tails):
                return "她"
            return "他" if _MEN.search(phrase) or _HIM.search(tails) else None
        if phrase in chinese.CITIES or _PLACE.search(phrase):
            return None if tail.startswith(("属于", "在")) else rng.choice(("那里", "那边", "那儿"))
        return "它" if tail.startswith("的") else rng.choice(("它", "这个", "这个"))

    @staticmethod
    def _finish(first: str, utterance: str, rewrite: str, rng: random.Random) -> Draft | None:
        if rewrite == first:
            return None
        reply = None if rng.random() < 0.1 else draw_reply("zh", _topic(first), rng)
        return chinese.finish(first, reply, utterance, rewrite, rng)


class SharedTail:
    """那抖音呢 after 微信怎么注销, where somebody has asked 抖音怎么注销."""

    def __init__(self, requests: Sequence[Request]) -> None:
        splits = [split_phrase(request.text) for request in requests if len(request.text) <= 22]
        counts = Counter(split[0] for split in splits if split is not None)
        tails: dict[str, set[str]] = defaultdict(set)
        for split in splits:
            if split is not None and (len(split[0]) <= 4 or counts[split[0]] > 1):
                tail = split[1].rstrip("?？")
                if tail not in _VAGUE_TAILS:
                    tails[tail].add(split[0])
        self.phrases = {tail: sorted(found) for tail, found in tails.items() if len(found) > 1}
        self.tails = list(self.phrases)
        self.bounds = list(itertools.accumulate(len(self.phrases[tail]) ** 0.5 for tail in self.tails))

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up that only has another phrase."""
        if not self.tails:
            return None
        tail = rng.choices(self.tails, cum_weights=self.bounds)[0]
        first, second = rng.sample(self.phrases[tail], 2)
        if set(first) & set(second):
            return None
        forms = ("那{}呢", "那{}呢", "{}呢", "{}呢", "那么{}呢")
        if tail.startswith("的"):
            forms = ("那{}呢", "{}呢", "那{}的呢", "{}的呢", "那么{}的呢")
        utterance = rng.choice(forms).format(second)
        reply = draw_reply("zh", _topic(first + tail), rng)
        return chinese.finish(first + tail, reply, utterance, second + tail, rng)


def _key(request: Request) -> str:
    return request.text.rstrip("?？")


def _topic(question: str) -> str:
    return "help" if _HELP.search(question) else "facts"


def _overlap(first: str, second: str) -> bool:
    """Tell whether two ends ask nearly the same: then the second is no follow-up but a repetition."""
    asked, again = (set(_ASKS.sub("", text.rstrip("?？"))) for text in (first, second))
    return bool(asked & again) or not (asked or again)
