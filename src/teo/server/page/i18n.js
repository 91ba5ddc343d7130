// Every word of the page, in both languages; {name} is filled in.
const WORDS = {
  en: {
    skip: "Skip to the dialogue",
    tagline: "Makes the last turn of a dialogue understandable on its own.",
    language: "Language",
    dark: "Dark",
    dialogue: "Dialogue",
    dialogueHint: "Write the turns in order, or start from a sample.",
    samples: "Sample dialogues",
    turns: "Turns of the dialogue",
    turn: "Turn {number}",
    utterance: "Utterance to complete",
    removeTurn: "Remove turn {number}",
    addTurn: "Add a turn",
    clear: "Clear",
    options: "Options",
    ownThreshold: "Use the model’s own confidence threshold",
    ownThresholdIs: "Use the model’s own confidence threshold ({value})",
    minConfidence: "Keep the utterance below",
    token: "Access token",
    rewrite: "Rewrite",
    working: "Rewriting …",
    result: "Rewrite",
    empty: "The rewrite and its edits will stand here.",
    copyRewrite: "Copy the text",
    copy: "Copy",
    copied: "Copied",
    copyAs: "The same request as",
    legend: "What the colours mean",
    inserted: "inserted",
    replaced: "replaced",
    removed: "removed",
    hover: "Point at an edit, or reach it with Tab, to see why.",
    operations: "Stage 1 proposed",
    noOperations: "nothing to change",
    confidence: "Confidence",
    thresholdUsed: "changed from {value} up",
    latency: "Latency",
    latencyParts: "queue {queue} ms, model {model} ms",
    truncated: "Not read",
    truncatedText: "the {turns} oldest turns ({characters} characters) do not fit into the model",
    changed: "{count} edits; the rest is as it was written.",
    changedOne: "1 edit; the rest is as it was written.",
    kept: "Kept as it is: it can be understood on its own.",
    abstained: "Kept as it is: a change was proposed, but its confidence is below the threshold.",
    stale: "The dialogue has changed since this rewrite.",
    insertTip: "Inserted “{text}”.",
    replaceTip: "“{old}” became “{text}”.",
    deleteTip: "“{old}” was left out.",
    fromTurn: "Turn {number} says it.",
    served: "Model {model}, pipeline {variant}, teo {version}",
    unreachable: "The server cannot be reached. Is it still running?",
    badAnswer: "The server answered in a form that this page does not know (status {status}).",
    requestId: "Request {id}",
  },
  zh: {
    skip: "跳到对话",
    tagline: "让对话的最后一句脱离上文也能看懂。",
    language: "语言",
    dark: "深色",
    dialogue: "对话",
    dialogueHint: "按顺序输入每一句，或从示例开始。",
    samples: "示例对话",
    turns: "对话的各句",
    turn: "第 {number} 句",
    utterance: "待补全的话",
    removeTurn: "删除第 {number} 句",
    addTurn: "添加一句",
    clear: "清空",
    options: "选项",
    ownThreshold: "使用模型自带的置信度阈值",
    ownThresholdIs: "使用模型自带的置信度阈值（{value}）",
    minConfidence: "低于此值时保留原句",
    token: "访问令牌",
    rewrite: "改写",
    working: "正在改写……",
    result: "改写结果",
    empty: "改写结果和各处编辑会显示在这里。",
    copyRewrite: "复制文本",
    copy: "复制",
    copied: "已复制",
    copyAs: "相同请求的代码",
    legend: "颜色说明",
    inserted: "插入",
    replaced: "替换",
    removed: "删去",
    hover: "将指针移到编辑处，或用 Tab 键选中，可查看说明。",
    operations: "第一阶段的编辑操作",
    noOperations: "无需改动",
    confidence: "置信度",
    thresholdUsed: "不低于 {value} 才改写",
    latency: "耗时",
    latencyParts: "排队 {queue} 毫秒，模型 {model} 毫秒",
    truncated: "未读取",
    truncatedText: "最早的 {turns} 句（{characters} 个字符）超出模型可读的长度",
    changed: "共 {count} 处编辑，其余与原句一致。",
    changedOne: "共 1 处编辑，其余与原句一致。",
    kept: "保留原句：不看上文也能看懂。",
    abstained: "保留原句：有改写建议，但置信度低于阈值。",
    stale: "对话在此次改写之后有改动。",
    insertTip: "插入了“{text}”。",
    replaceTip: "“{old}”改为“{text}”。",
    deleteTip: "删去了“{old}”。",
    fromTurn: "出自第 {number} 句。",
    served: "模型 {model}，流程 {variant}，teo {version}",
    unreachable: "无法连接服务器，请确认它仍在运行。",
    badAnswer: "服务器的回答格式无法识别（状态码 {status}）。",
    requestId: "请求编号 {id}",
  },
};

let language = "en";

export function getLanguage() {
  return language;
}

/** The sentence of a key in the current language. */
export function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Switch the language of everything that is marked in the page. */
export function setLanguage(chosen) {
  language = chosen in WORDS ? chosen : "en";
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-i18n]")) {
    element.textContent = say(element.dataset.i18n);
  }
  for (const element of document.querySelectorAll("[data-i18n-label]")) {
    element.setAttribute("aria-label", say(element.dataset.i18nLabel));
  }
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === language));
  }
}
