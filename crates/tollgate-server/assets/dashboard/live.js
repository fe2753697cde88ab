// Event stream /api/live. The browser reconnects after a broken connection, but not after an error response; this
// module does. The stream is closed while the page is hidden.

const SILENCE_MS = 5000;
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 10_000;

export const createLive = ({ onPolicy, onHistory, onFrame, onState, onReconnect, onRefused }) => {
  let source = null;
  let started = false;
  let retryMs = MIN_RETRY_MS;
  let retryTimer = 0;
  let silenceTimer = 0;
  let silent = false;
  let broken = false;

  const close = () => {
    clearTimeout(retryTimer);
    clearTimeout(silenceTimer);
    source?.close();
    source = null;
  };

  // The node ends streams regularly and the browser reconnects immediately; only a longer silence is reported.
  const restartSilenceTimer = () => {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(() => {
      silent = true;
      onState("silent");
    }, SILENCE_MS);
  };

  const handleError = () => {
    broken = true;
    onState(silent ? "silent" : "reconnecting");
    if (source?.readyState !== EventSource.CLOSED) return;
    source = null;
    retryTimer = setTimeout(open, retryMs);
    retryMs = Math.min(retryMs * 2, MAX_RETRY_MS);
    onRefused();
  };

  const listen = (name, handler) => source.addEventListener(name, (event) => handler(JSON.parse(event.data)));

  const handleFrame = (frame) => {
    retryMs = MIN_RETRY_MS;
    silent = false;
    restartSilenceTimer();
    onState("live");
    onFrame(frame);
    if (broken) onReconnect();
    broken = false;
  };

  function open() {
    close();
    if (!started || document.hidden) return;
    restartSilenceTimer();
    source = new EventSource("/api/live");
    listen("policy", onPolicy);
    listen("history", onHistory);
    listen("frame", handleFrame);
    source.addEventListener("error", handleError);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return open();
    broken ||= source !== null;
    close();
  });
  return {
    start: () => {
      started = true;
      onState("connecting");
      open();
    },
    stop: () => {
      started = false;
      close();
    },
  };
};
