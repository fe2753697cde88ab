// Light or dark: as the system has it, unless this browser was told otherwise here. Not a module, so that it runs
// before anything is painted.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  // Storage may be forbidden; then the choice lasts as long as the page.
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("tollgate.theme");
      if (value === null) localStorage.removeItem("tollgate.theme");
      else localStorage.setItem("tollgate.theme", value);
    } catch {
      // Nothing to keep it in.
    }
    return value ?? null;
  };

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  const choose = (theme) => {
    const wanted = theme === "dark" || theme === "light" ? theme : null;
    if (wanted) root.dataset.theme = wanted;
    else delete root.dataset.theme;
  };

  const label = () => {
    document.getElementById("theme").textContent = isDark() ? "Light" : "Dark";
    dispatchEvent(new Event("tollgate:theme"));
  };

  // What the system has anyway is not worth keeping: the page then follows it again.
  const toggle = () => {
    const wanted = isDark() ? "light" : "dark";
    const own = (wanted === "dark") === system.matches ? null : wanted;
    stored(own);
    choose(own);
    label();
  };

  choose(stored());
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", toggle);
    system.addEventListener("change", label);
    label();
  });
})();
