// Dialogues to start from; the last turn of each is the utterance to complete.
export const SAMPLES = [
  { id: "curie", lang: "en", title: "Who is “he”?", turns: [
    "Did Marie Curie discover radium alone?", "No, together with Pierre Curie.", "When did he die?"] },
  { id: "train", lang: "en", title: "And to …?", turns: [
    "Is there a train from London to York?", "Yes, at 9:15.", "And to Leeds?"] },
  { id: "mona", lang: "en", title: "Two at once", turns: [
    "Who painted the Mona Lisa?", "Leonardo da Vinci.", "When did he paint it?"] },
  { id: "thanks", lang: "en", title: "Just thanks", turns: [
    "Is the science museum open today?", "Yes, until six in the evening.", "Thank you very much!"] },
  { id: "zhou", lang: "zh", title: "“他”是谁", turns: ["你喜欢周杰伦吗", "喜欢", "他哪年出生的"] },
  { id: "film", lang: "zh", title: "省略的主语", turns: ["你看过流浪地球吗", "看过，很好看", "谁导演的"] },
  { id: "hotpot", lang: "zh", title: "省略的宾语", turns: ["你喜欢吃火锅吗", "特别喜欢", "为什么喜欢"] },
  { id: "library", lang: "zh", title: "只是道谢", turns: ["附近有图书馆吗", "有，走路十分钟", "好的，谢谢你"] },
];
