// Text to the clipboard, and the button says so.
import { make } from "./edits.js";
import { say } from "./i18n.js";

/** Copy a text; the button's own words, of `key`, come back after a moment. */
export async function copy(text, button, key) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without the clipboard's leave (no https, an old browser): through a selection.
    const area = make("textarea", "sr");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = say("copied");
  setTimeout(() => (button.textContent = say(key)), 1500);
}

/** Make what is selected in an element copy as it reads: without the words that were struck out. */
export function copyWithoutStruck(element) {
  element.addEventListener("copy", (event) => {
    const selection = getSelection();
    const range = selection.rangeCount ? selection.getRangeAt(0) : null;
    if (!range || !element.contains(range.commonAncestorContainer)) return; // more is selected: the style sheet sees to it
    const part = range.cloneContents();
    part.querySelectorAll("del").forEach((struck) => struck.remove());
    event.clipboardData.setData("text/plain", part.textContent);
    event.preventDefault();
  });
}
