// Light or dark theme: that of the system, unless the user chose one in this browser. Not a module, so that it runs
// before the first paint.
"use strict";
(() => {
  const STORAGE_KEY = "tollgate.theme";
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  // If storage is forbidden, the choice is kept until the page is closed.
  const loadChoice = () => {
    try {
      return localStorage.getItem(STORAGE_KEY);
    } catch {
      return null;
    }
  };

  const saveChoice = (theme) => {
    try {
      if (theme === null) localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, theme);
    } catch {
      // Storage is forbidden.
    }
  };

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

  const apply = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };

  const updateButton = () => {
    document.getElementById("theme").textContent = isDark() ? "Light" : "Dark";
    dispatchEvent(new Event("tollgate:theme"));
  };

  // A choice equal to the theme of the system is not stored, so that the page follows the system again.
  const toggle = () => {
    const theme = isDark() ? "light" : "dark";
    const choice = (theme === "dark") === systemDark.matches ? null : theme;
    saveChoice(choice);
    apply(choice);
    updateButton();
  };

  apply(loadChoice());
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", toggle);
    systemDark.addEventListener("change", updateButton);
    updateButton();
  });
})();
