// What is remembered, where the browser lets us: nothing that a user wrote into a dialogue.

const stores = { always: () => localStorage, session: () => sessionStorage };

/** What was remembered under a key, or null. */
export function recall(key, store = "always") {
  try {
    return stores[store]().getItem(key);
  } catch {
    return null;
  }
}

/** Remember a value: always, or until this tab is closed ("session"). */
export function remember(key, value, store = "always") {
  try {
    stores[store]().setItem(key, value);
  } catch {
    // A browser that stores nothing still works.
  }
}
