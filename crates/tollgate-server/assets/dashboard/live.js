// The stream of /api/live. Browsers reconnect by themselves when it breaks; when the node refuses it, they do not,
// and this does. While nobody looks at the page the stream is closed.

const SILENCE_MS = 5000;
const LONGEST_WAIT_MS = 10_000;

export const createLive = ({ onPolicy, onHistory, onFrame, onState, onBack, onRefused }) => {
  let source = null;
  let wanted = false;
  let wait = 1000;
  let retry = 0;
  let silence = 0;
  let silent = false;
  let broken = false;

  const close = () => {
    clearTimeout(retry);
    clearTimeout(silence);
    source?.close();
    source = null;
  };

  // Streams end now and then, and go on a moment later; only a longer silence is news.
  const awaitNews = () => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      silent = true;
      onState("silent");
    }, SILENCE_MS);
  };

  const failed = () => {
    broken = true;
    onState(silent ? "silent" : "reconnecting");
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    retry = setTimeout(open, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    onRefused();
  };

  const listen = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));

  const framed = (frame) => {
    wait = 1000;
    silent = false;
    awaitNews();
    onState("live");
    onFrame(frame);
    if (broken) onBack();
    broken = false;
  };

  function open() {
    close();
    if (!wanted || document.hidden) return;
    awaitNews();
    source = new EventSource("/api/live");
    listen("policy", onPolicy);
    listen("history", onHistory);
    listen("frame", framed);
    source.addEventListener("error", failed);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return open();
    broken ||= source !== null;
    close();
  });
  return {
    start: () => {
      wanted = true;
      onState("connecting");
      open();
    },
    stop: () => {
      wanted = false;
      close();
    },
  };
};
