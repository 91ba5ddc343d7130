// What the page says, in the browser's language: Chinese if it asks for it, else English.
const WORDS = {
  en: {
    title: "Which rewrite is better?",
    task: "You see a dialogue, its last utterance and two rewrites of it. A good rewrite says the same as the utterance and can be understood without the dialogue. Choose the better one, or say that neither is better.",
    name: "Your name",
    nameHint: "Enter the same name to resume.",
    begin: "Start",
    dialogue: "Dialogue",
    utterance: "Last utterance",
    rewrites: "Rewrites",
    tie: "Neither is better",
    back: "Back",
    keys: "Keys: 1, 2, and 0 or 3 if neither is better; Backspace goes back.",
    thanks: "Thank you!",
    finished: "You have judged all items. All votes are stored; you may close this page.",
    progress: "{done} of {total} judged",
    unreachable: "The server does not answer, so the last step is not stored. Try again once it runs.",
    failed: "The server could not store this. Try again.",
  },
  zh: {
    title: "哪个改写更好？",
    task: "下面是一段对话、它的最后一句话，以及这句话的两个改写。好的改写与原句意思相同，并且不看对话也能理解。请选出更好的一个，或者选择不分上下。",
    name: "您的名字",
    nameHint: "输入相同的名字，可以从上次停下的地方继续。",
    begin: "开始",
    dialogue: "对话",
    utterance: "最后一句",
    rewrites: "改写",
    tie: "不分上下",
    back: "返回",
    keys: "按键：1、2，不分上下按 0 或 3；退格键返回上一项。",
    thanks: "谢谢！",
    finished: "您已评完所有条目，结果都已保存，可以关闭本页。",
    progress: "已评 {done} / {total}",
    unreachable: "服务器没有响应，刚才的操作没有保存。请在它恢复后再试。",
    failed: "服务器未能保存，请再试一次。",
  },
};
const language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

export function say(key, values = {}) {
  return WORDS[language][key].replace(/{(\w+)}/g, (_, name) => values[name]);
}

export function translate() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
}
