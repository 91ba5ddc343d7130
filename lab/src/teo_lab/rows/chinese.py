"""Chinese forms that the follow-ups share: slots found in plain requests, topics of intents, final marks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from teo_lab.rows.choices import word_set
from teo_lab.rows.requests import Draft, Request, SlotValue

CITIES = word_set(
    """
    北京 上海 广州 深圳 天津 重庆 成都 杭州 南京 武汉 西安 苏州 郑州 长沙 沈阳 青岛 大连
    宁波 厦门 济南 哈尔滨 长春 石家庄 太原 合肥 南昌 福州 昆明 贵阳 南宁 海口 兰州 西宁 银川
    乌鲁木齐 拉萨 呼和浩特 无锡 常州 徐州 扬州 温州 绍兴 金华 嘉兴 台州 芜湖 泉州 漳州 烟台
    潍坊 临沂 威海 洛阳 开封 宜昌 襄阳 株洲 衡阳 东莞 佛山 珠海 中山 惠州 汕头 桂林 柳州
    三亚 绵阳 遵义 大理 丽江 咸阳 保定 唐山 秦皇岛 大同 包头 香港 澳门 台北 东京 纽约 伦敦
    巴黎 首尔 曼谷 新加坡
    """
)
_DAYS = "今天|明天|后天|昨天|今晚|明晚|周末|下周[一二三四五六日]|周[一二三四五六日]|星期[一二三四五六日]"
_CITY = "|".join(sorted(CITIES, key=len, reverse=True))
_NO_FUNCTION = r"[^我你您的了吗呢吧是有不什么怎这那它他她们个一]"
_PATTERNS = tuple(
    (intent, re.compile(pattern))
    for intent, pattern in (
        ("weather", rf"(?:查一下|查询|我想知道)?(?P<city>{_CITY})市?(?P<date>{_DAYS})?的?(?:天气|气温|温度).{{0,6}}$"),
        ("weather", rf"(?P<date>{_DAYS})(?P<city>{_CITY})市?的?(?:天气|气温|温度).{{0,6}}$"),
        (
            "weather",
            rf"(?P<city>{_CITY})(?P<date>{_DAYS})?(?:会不会下雨|会下雨吗|下雨吗|有雨吗|冷吗|热吗|冷不冷|热不热|多少度|几度)$",
        ),
        ("telephone", r"(?:打电话给|给)(?P<person>[\u4e00-\u9fff]{2,3}?)(?:打电话|打个电话|发短信|发微信|发个短信)?$"),
        ("telephone", r"(?:呼叫|拨打|打给|联系)(?P<person>[\u4e00-\u9fff]{2,3})(?:的电话)?$"),
        (
            "translate",
            r"(?P<word>[\u4e00-\u9fff]{2,5}?)(?:用|的)?(?:英语|英文|日语|韩语)(?:怎么说|怎么读|怎么写|是什么|怎么讲)$",
        ),
        ("cook", rf"(?P<dish>{_NO_FUNCTION}{{2,5}})(?:的做法|怎么做好吃|怎么做才好吃|的家常做法)$"),
        (
            "open",
            r"打开(?P<app>微信|QQ|qq|支付宝|抖音|淘宝|微博|相机|日历|计算器|百度地图|高德地图|音乐|京东|拼多多|快手|设置|相册|浏览器|录音机)$",
        ),
        (
            "idiom",
            rf"(?P<word>{_NO_FUNCTION}{{2,4}})(?:是什么意思|什么意思|的意思是什么|的近义词是什么|的反义词是什么|的拼音|怎么读)$",
        ),
        (
            "distance",
            rf"从?(?P<from>{_CITY})到(?P<to>{_CITY})(?:的火车票|的机票|的高铁|的航班|有多远|多远|要多久|多少公里|怎么走|的距离|的汽车票).{{0,3}}$",
        ),
        ("capital", r"(?P<country>\w{2,4})的?首都(?:是哪里|是哪|在哪里|是哪个城市|是什么)$"),
        (
            "festival",
            rf"(?P<day>[春端中国重清元圣情母父劳儿教]{_NO_FUNCTION}{{1,2}})(?:是什么时候|是哪天|是几号|是几月几号|放几天假|是哪一天|几月几号)$",
        ),
    )
)
_MARKED = 0.35
"""Share of the dialogues whose user writes final marks."""
_TOPICS = {
    "weather": "weather",
    "music": "music",
    "train": "transport",
    "flight": "transport",
    "bus": "transport",
    "distance": "transport",
    "cookbook": "food",
    "cook": "food",
    "telephone": "contact",
    "message": "message",
    "map/ROUTE": "transport",
    "contacts": "contact",
    "video": "video",
    "epg": "video",
    "tvchannel": "video",
    "app": "app",
    "open": "app",
    "website": "app",
}


def topic(intent: str) -> str:
    """Return the topic of replies to an intent."""
    return _TOPICS.get(intent) or _TOPICS.get(intent.partition("/")[0], "facts" if intent else "generic")


def find_slots(requests: Sequence[Request]) -> Iterator[Request]:
    """Yield the requests that have slots, and those in which a known form shows where they are."""
    for request in requests:
        if request.slots:
            yield request
            continue
        for intent, pattern in _PATTERNS:
            match = pattern.match(request.text)
            if match:
                names = [name for name, value in match.groupdict().items() if value]
                if any(match.group(name).endswith(("的", "用")) for name in names):
                    continue
                slots = tuple(SlotValue(name, *match.span(name), match.group(name)) for name in names)
                slots = tuple(sorted(slots, key=lambda slot: slot.start))
                yield Request(request.text, request.source, intent, slots)
                break


def is_question(text: str) -> bool:
    """Tell whether a text asks."""
    return (
        re.search(r"[吗呢么?？谁哪几]|什么|怎么|怎样|如何|多少|多[久远高大长]|会不会|能不能|是不是|好不好", text)
        is not None
    )


def finish(first: str, reply: str | None, utterance: str, rewrite: str, rng: random.Random) -> Draft:
    """Return the draft, its user turns all with final marks or all without."""
    marked = rng.random() < _MARKED
    texts = [_marked(text) if marked else text.rstrip("？?。") for text in (first, utterance, rewrite)]
    history = (texts[0],) if reply is None else (texts[0], reply)
    return Draft(history, texts[1], texts[2])


def _marked(text: str) -> str:
    return text if text.endswith(("？", "?", "。", "！")) else text + ("？" if is_question(text) else "。")
