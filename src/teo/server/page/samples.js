// Dialogues to start from; the last turn of each is the utterance to complete.
export const SAMPLES = [
  { id: "curie", lang: "en", title: "Who is “he”?", turns: [
    "Did Marie Curie discover radium alone?", "No, together with Pierre Curie.", "When did he die?"] },
  { id: "table", lang: "en", title: "What about …?", turns: [
    "Can I book a table at Luigi's for Friday?", "Luigi's is fully booked on Friday.", "What about Saturday?"] },
  { id: "kite", lang: "en", title: "Both at once", turns: [
    "I finally watched The Kite Runner.", "I heard Khaled Hosseini wrote the novel.", "Yes, he is the author."] },
  { id: "thanks", lang: "en", title: "Complete", turns: [
    "Is the science museum open today?", "Yes, until six in the evening.", "Thank you very much!"] },
  { id: "luoji", lang: "zh", title: "“他”是谁", turns: ["你看过三体吗", "看过，我最喜欢罗辑", "为什么喜欢他"] },
  { id: "rain", lang: "zh", title: "省略的问题", turns: ["杭州周末会下雨吗", "杭州周末是晴天", "那苏州呢"] },
  { id: "camera", lang: "zh", title: "补全回答", turns: ["我昨天买了一台新相机", "花了多少钱", "三千多"] },
  { id: "library", lang: "zh", title: "不用改写", turns: ["附近有图书馆吗", "有，走路十分钟", "好的，谢谢你"] },
];
